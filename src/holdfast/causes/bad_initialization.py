from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python, torch

BEGUN = "the weights were not finite before"  # the words of `detectors/numerics/incident`
CAUSE = CauseRecord(
    id="bad-initialization",
    family="numerics",
    title="The weights begin at values from which nothing is learned",
    meaning="Weights that are all equal make all units of a layer alike, and they stay so; weights that are far too large saturate every unit at once; some are no numbers at all. The model would learn from another beginning.",
    sure="The weights before the first step.",
    says_more_than=("dead-activations", "vanishing-gradients", "learning-rate-too-high", "learning-rate-too-low"),
    recipes=(
        keras(
            "Leave the default, or choose one for the activation",
            'keras.layers.Dense(64, activation="relu", kernel_initializer="he_normal")\n# zeros only for biases: bias_initializer="zeros"',
            unsaid=BEGUN,
        ),
        torch(
            "Leave the default, or choose one for the activation",
            'torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")\ntorch.nn.init.zeros_(layer.bias)',
            unsaid=BEGUN,
        ),
        python(
            "See which rows of what the weights were made of are no numbers, and mend those",
            "bad = ~numpy.isfinite(table).all(axis=1)\ntable[bad] = 0.0  # or divide by max(norm, 1e-8) in the first place",
            said=BEGUN,
        ),
    ),
)
