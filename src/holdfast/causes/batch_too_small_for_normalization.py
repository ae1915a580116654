from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, torch

CAUSE = CauseRecord(
    id="batch-too-small-for-normalization",
    family="numerics",
    title="A batch of one went through batch normalisation",
    meaning="One value has no spread, so it cannot be normalised. It is usually the rest at the end of an epoch.",
    sure="The message itself, and a batch dimension of 1.",
    says_more_than=(
        "dead-activations",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "vanishing-gradients",
    ),
    recipes=(
        torch("Leave out the rest at the end of an epoch", "DataLoader(dataset, batch_size=32, drop_last=True)"),
        torch("Normalise without the batch", "torch.nn.GroupNorm(8, 64)  # instead of BatchNorm2d(64)"),
        keras("More rows in a batch", "model.fit(x, y, batch_size=32)"),
        keras("Normalise without the batch", "keras.layers.LayerNormalization()  # instead of BatchNormalization()"),
        keras(
            "Leave out the rest at the end of an epoch",
            "dataset = dataset.unbatch().batch(32, drop_remainder=True)",
        ),
    ),
    exceptions=(
        rule(
            0.97,
            says(
                "Expected more than 1 (?:value per channel|spatial element) when training",
                (
                    "torch 2.13.0",
                    "ValueError: Expected more than 1 spatial element when training, got input size torch.Size([1, 3, 1, 1])",
                ),
            ),
        ),
    ),
)
