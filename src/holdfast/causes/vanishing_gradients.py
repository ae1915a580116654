from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, torch
from holdfast.causes.shared.words import REMEDY

CAUSE = CauseRecord(
    id="vanishing-gradients",
    family="numerics",
    title="The first layers get no gradient",
    meaning="The gradient shrinks on its way back through the layers. The first ones do not learn, and the loss stays where it is.",
    sure="The gradient norm of the first layers is orders of magnitude below that of the last, and the loss is flat.",
    recipes=(
        keras(
            "An activation that does not saturate, and normalisation",
            'keras.layers.Dense(64, activation="relu",\n                   kernel_initializer="he_normal")',
        ),
        torch(
            "An activation that does not saturate, and normalisation",
            "torch.nn.Sequential(torch.nn.Linear(64, 64),\n                    torch.nn.LayerNorm(64), torch.nn.ReLU())",
        ),
    ),
    exceptions=(
        rule(
            0.85,
            says(
                "vanishing gradient",
                ("a training library in public", "AbortTraining: Vanishing gradients detected. Value: 3.1e-09."),
            ),
            unless=REMEDY,
        ),
    ),
    lines=(
        rule(
            0.7,
            says(
                "vanishing gradients? (?:was |were )?(?:detected|found)",
                ("a training script in public", "WARNING: Vanishing gradients detected: 0.000213"),
            ),
        ),
    ),
)
