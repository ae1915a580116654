from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python

CAUSE = CauseRecord(
    id="unscaled-target",
    family="numerics",
    title="The targets are far from what the model starts at",
    meaning="The quantity to be predicted is orders of magnitude larger than the outputs of a fresh model. The first gradients are huge, or the outputs take thousands of steps to get there.",
    sure="The range of the targets against that of the outputs, and a loss that does not fall or overflows.",
    says_more_than=("learning-rate-too-high", "exploding-gradients", "learning-rate-too-low"),
    recipes=(
        python(
            "Scale the targets, and the predictions back",
            "mean, deviation = y.mean(0), y.std(0) + 1e-8\ny = (y - mean) / deviation\n# prediction * deviation + mean",
        ),
        keras(
            "Let the last layer begin at their mean",
            "mean = keras.initializers.Constant(float(y_train.mean()))\nkeras.layers.Dense(1, bias_initializer=mean)",
        ),
    ),
)
