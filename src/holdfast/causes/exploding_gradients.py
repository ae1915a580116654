from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, torch
from holdfast.causes.shared.recipes import CLIP, SLOWER
from holdfast.causes.shared.words import CHECKED, NAN_SYMPTOM, REMEDY

NOT_CLEARED = "gradients are not cleared"  # the words of `detectors/numerics/uncleared_gradients`
CAUSE = CauseRecord(
    id="exploding-gradients",
    family="numerics",
    title="Gradients explode",
    meaning="Their norm grows without bound from layer to layer or step to step. One such update ruins the weights.",
    sure="The gradient norm rises steeply in the steps before the loss breaks.",
    recipes=(
        torch(
            "Clear the gradients before each backward pass",
            "optimizer.zero_grad()  # the line that is missing\nloss.backward()\noptimizer.step()",
            said=NOT_CLEARED,
        ),
        *CLIP,
        *SLOWER[:2],
    ),
    exceptions=(
        rule(
            0.41,
            says(
                CHECKED,
                ("torch 2.13.0", "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output."),
            ),
        ),
        rule(
            0.9,
            says(
                "exploding gradient",
                ("a training library in public", "AbortTraining: Exploding gradients detected. Value: 18342.77."),
            ),
            unless=REMEDY,
        ),
        rule(
            0.41,
            *NAN_SYMPTOM,
            says(
                "norm of order .{0,40}gradients.{0,60}non-finite",
                (
                    "torch 2.13.0",
                    "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.7,
            says(
                "exploding gradients? (?:was |were )?(?:detected|found)",
                ("a training script in public", "WARNING: Exploding gradients detected!"),
            ),
        ),
    ),
)
