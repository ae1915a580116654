from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, torch
from holdfast.causes.shared.recipes import CLIP, SLOWER, STEADY
from holdfast.causes.shared.words import NAN_SYMPTOM

DECAY = "a weight decay of"  # the words of `detectors/numerics/learning_rate`
CAUSE = CauseRecord(
    id="learning-rate-too-high",
    family="numerics",
    title="The learning rate is too high",
    meaning="Each update overshoots, so the loss grows instead of falling, until it is no number any more. A smaller rate, or a slow start, mends it.",
    sure="The loss grows from the start or right after the rate was raised, and training is stable at a smaller rate.",
    says_more_than=("dead-activations", "vanishing-gradients"),
    recipes=(
        torch(
            "A usual weight decay",
            "optimizer = torch.optim.$optimizer(\n    model.parameters(), lr=$lower_rate, weight_decay=1e-4)",
            said=DECAY,
        ),
        keras("A usual weight decay", "optimizer = keras.optimizers.$optimizer(weight_decay=1e-4)", said=DECAY),
        *STEADY,
        *SLOWER,
        *CLIP[:3],
        torch("Start slowly", "torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=500)"),
    ),
    exceptions=(
        rule(
            0.54,
            says(
                r"contain Inf/NaN\. Training has diverged",
                (
                    "detectron2 v0.6",
                    "FloatingPointError: Predicted boxes or scores contain Inf/NaN. Training has diverged.",
                ),
            ),
        ),
        # Detectron says when: some steps went well, so it is not the data, and it was not long.
        rule(
            0.54,
            says(
                r"infinite or NaN at iteration=(?:[2-9]|\d{2,3})\b",
                ("a log shown in public", "FloatingPointError: Loss became infinite or NaN at iteration=27!"),
            ),
        ),
        rule(
            0.42,
            *NAN_SYMPTOM,
            says(
                "loss exploded",
                ("Tacotron-2, train.py", "Exception: Loss exploded"),
                ("Tacotron-2, train.py", "Loss exploded to 187.03214 at step 1250"),
            ),
        ),
    ),
    lines=(
        rule(
            0.42,
            says(
                "Loss is (?:nan|inf), stopping training",
                ("torchvision 0.29 references", "Loss is nan, stopping training"),
            ),
            "loss exploded",
        ),
    ),
)
