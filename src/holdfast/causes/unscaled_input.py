from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python

CAUSE = CauseRecord(
    id="unscaled-input",
    family="numerics",
    title="The features have very different scales",
    meaning="Some are thousands of times larger than others, so one learning rate cannot fit all. Scaled to mean 0 and deviation 1 they train well.",
    sure="Per-feature ranges, and a first layer that saturates.",
    says_more_than=(
        "dead-activations",
        "exploding-gradients",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "vanishing-gradients",
    ),
    recipes=(
        python("Scale it once, not twice", "x = x / 255.0  # here, and nowhere else", said="next to nothing"),
        keras(
            "Scale them in the model",
            "norm = keras.layers.Normalization()\nnorm.adapt(x_train)  # then put it first",
        ),
        python("Scale them once", "mean, deviation = x.mean(0), x.std(0) + 1e-8\nx = (x - mean) / deviation"),
    ),
)
