from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, torch

CAUSE = CauseRecord(
    id="bad-initialization",
    family="numerics",
    title="The weights begin at values from which nothing is learned",
    meaning="Weights that are all equal make all units of a layer alike, and they stay so; weights that are far too large saturate every unit at once. The model would learn from another beginning.",
    sure="The weights before the first step.",
    says_more_than=("dead-activations", "vanishing-gradients", "learning-rate-too-high", "learning-rate-too-low"),
    recipes=(
        keras(
            "Leave the default, or choose one for the activation",
            'keras.layers.Dense(64, activation="relu", kernel_initializer="he_normal")\n# zeros only for biases: bias_initializer="zeros"',
        ),
        torch(
            "Leave the default, or choose one for the activation",
            'torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")\ntorch.nn.init.zeros_(layer.bias)',
        ),
    ),
)
