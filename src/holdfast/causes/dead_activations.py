from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, near, rule, says, torch
from holdfast.causes.shared.recipes import SLOWER

NO_ACTIVATION = "with no activation between"  # the words of `detectors/numerics/no_activation`
CAUSE = CauseRecord(
    id="dead-activations",
    family="numerics",
    title="Many units always give the same output",
    meaning="They are zero or saturated for every input, so no gradient passes them. They will not come back by themselves.",
    sure="A large share of units is constant over many batches while the loss is flat.",
    recipes=(
        keras(
            "An activation between the layers",
            'keras.layers.Dense(64, activation="relu")  # not of the last',
            said=NO_ACTIVATION,
        ),
        torch(
            "An activation between the layers",
            "from torch.nn import Linear, ReLU, Sequential\nSequential(Linear(16, 64), ReLU(), Linear(64, 1))",
            said=NO_ACTIVATION,
        ),
        keras("An activation that never dies", "keras.layers.LeakyReLU(negative_slope=0.1)", unsaid=NO_ACTIVATION),
        torch("An activation that never dies", "torch.nn.LeakyReLU(0.1)", unsaid=NO_ACTIVATION),
        *SLOWER[:2],
    ),
    lines=(
        rule(
            0.7,
            says(
                r"(?<![\d.])(?:[6-9]\d|100)(?:\.\d+)? ?% .{0,30}\bdead (?:ReLU|neuron|unit|activation)s?\b",
                ("a training script in public", "Layer relu_2: 73.44% dead neurons"),
                near("a training script in public", "Layer relu_2: 4.69% dead neurons"),
            ),
        ),
    ),
)
