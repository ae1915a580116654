from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, torch

CAUSE = CauseRecord(
    id="learning-rate-too-low",
    family="numerics",
    title="The learning rate is too low",
    meaning="Each update moves the weights so little that training barely moves. Nothing is wrong otherwise.",
    sure="Updates are less than a millionth of the weights, and the loss falls in a straight, tiny slope.",
    recipes=(
        keras("A usual learning rate", "optimizer = keras.optimizers.$optimizer(learning_rate=$higher_rate)"),
        torch("A usual learning rate", "optimizer = torch.optim.$optimizer(model.parameters(), lr=$higher_rate)"),
    ),
)
