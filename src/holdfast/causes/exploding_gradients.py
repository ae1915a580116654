from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule
from holdfast.causes.shared.recipes import CLIP, SLOWER
from holdfast.causes.shared.words import CHECKED, NAN_SYMPTOM, REMEDY

CAUSE = CauseRecord(
    id="exploding-gradients",
    family="numerics",
    title="Gradients explode",
    meaning="Their norm grows without bound from layer to layer or step to step. One such update ruins the weights.",
    sure="The gradient norm rises steeply in the steps before the loss breaks.",
    recipes=(*CLIP, *SLOWER[:2]),
    exceptions=(
        rule(0.41, CHECKED),
        rule(0.9, "gradients? (?:norm )?(?:is |are |has )?explod", "exploding gradient", unless=REMEDY),
        rule(
            0.41,
            *NAN_SYMPTOM,
            "gradient norm.{0,40}(?:nan|inf|non-finite)",
            "norm of order .{0,40}gradients.{0,60}non-finite",
        ),
    ),
    lines=(rule(0.7, "exploding gradients? (?:was |were )?(?:detected|found)"),),
)
