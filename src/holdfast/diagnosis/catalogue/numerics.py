"""Numbers that go wrong: NaN, overflow, training that does not move."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import Entry, jax, keras, python, torch

CLIP = (
    keras("Clip the gradients", "keras.optimizers.Adam(1e-3, global_clipnorm=1.0)"),
    torch("Clip the gradients", "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
    jax("Clip the gradients", "optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))"),
)
SLOWER = (
    keras("A tenth of the learning rate", "optimizer = keras.optimizers.Adam(learning_rate=1e-4)"),
    torch("A tenth of the learning rate", "optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)"),
    jax("A tenth of the learning rate", "optimizer = optax.adam(1e-4)"),
)
PLAIN_MATH = r"math domain error|expected a (?:positive|nonnegative) input|division by zero"  # Python's own numbers

ENTRIES: dict[str, Entry] = {
    "bad-input-values": Entry(
        "The data holds NaN, infinity or absurd values",
        "Some rows hold values that are no numbers, and they spread into loss and weights. The model itself is not at fault.",
        "The values themselves, in the rows that were fed before the loss broke.",
        (
            python("Find the rows", "bad = numpy.argwhere(~numpy.isfinite(x))\nprint(bad[:10])"),
            python(
                "Put each column's median in their place",
                "x[~numpy.isfinite(x)] = numpy.nan\ncolumn = numpy.nanmedian(x, axis=0)\nx = numpy.where(numpy.isnan(x), column, x)",
            ),
            torch("Stop at the first one", 'assert torch.isfinite(x).all(), "bad batch"'),
            keras(
                "Leave such rows out",
                "dataset = dataset.unbatch().filter(\n    lambda x, y: tf.reduce_all(tf.math.is_finite(x))).batch(32)",
            ),
        ),
    ),
    "learning-rate-too-high": Entry(
        "The learning rate is too high",
        "Each update overshoots, so the loss grows instead of falling, until it is no number any more. A smaller rate, or a slow start, mends it.",
        "The loss grows from the start or right after the rate was raised, and training is stable at a smaller rate.",
        (
            *SLOWER,
            *CLIP[:2],
            torch("Start slowly", "torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=500)"),
        ),
    ),
    "exploding-gradients": Entry(
        "Gradients explode",
        "Their norm grows without bound from layer to layer or step to step. One such update ruins the weights.",
        "The gradient norm rises steeply in the steps before the loss breaks.",
        (*CLIP, *SLOWER[:2]),
    ),
    "vanishing-gradients": Entry(
        "The first layers get no gradient",
        "The gradient shrinks on its way back through the layers. The first ones do not learn, and the loss stays where it is.",
        "The gradient norm of the first layers is orders of magnitude below that of the last, and the loss is flat.",
        (
            keras(
                "An activation that does not saturate, and normalisation",
                'keras.layers.Dense(64, activation="relu",\n                   kernel_initializer="he_normal")',
            ),
            torch(
                "An activation that does not saturate, and normalisation",
                "torch.nn.Sequential(torch.nn.Linear(64, 64),\n                    torch.nn.LayerNorm(64), torch.nn.ReLU())",
            ),
        ),
    ),
    "invalid-math": Entry(
        "The model or the loss computes something undefined",
        "A logarithm of zero, a division by zero or a root of a negative number, with inputs and weights that are fine. Its result is no number, and all that follows neither.",
        "The first operation with a non-finite result has finite inputs.",
        (
            python("Keep away from zero", "math.log(max(p, 1e-12))", said=PLAIN_MATH),
            keras("Keep away from zero", "loss = -y * tf.math.log(tf.maximum(p, 1e-7))", unsaid=PLAIN_MATH),
            torch("Keep away from zero", "loss = -y * torch.log(p.clamp_min(1e-7))", unsaid=PLAIN_MATH),
            jax("Keep away from zero", "loss = -y * jnp.log(jnp.maximum(p, 1e-7))", unsaid=PLAIN_MATH),
            torch("Find the operation", "torch.autograd.set_detect_anomaly(True)", unsaid=PLAIN_MATH),
            keras("Find the operation", "tf.debugging.enable_check_numerics()", unsaid=PLAIN_MATH),
            jax("Find the operation", 'jax.config.update("jax_debug_nans", True)', unsaid=PLAIN_MATH),
        ),
    ),
    "mixed-precision-overflow": Entry(
        "Half precision overflows",
        "A value went beyond what 16 bits hold (65,504 in float16), or a gradient fell to zero. The same model in float32 or bfloat16 is fine.",
        "Infinity comes before NaN in a 16-bit tensor, or the loss scale fell to its minimum.",
        (
            torch(
                "Use bfloat16, which has float32's range",
                'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = loss_function(model(x), y)',
            ),
            keras(
                "Use bfloat16, which has float32's range", 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'
            ),
            jax("Use bfloat16, which has float32's range", "x = x.astype(jnp.bfloat16)"),
            torch("Scale the loss", 'scaler = torch.amp.GradScaler("cuda")'),
        ),
    ),
    "dead-activations": Entry(
        "Many units always give the same output",
        "They are zero or saturated for every input, so no gradient passes them. They will not come back by themselves.",
        "A large share of units is constant over many batches while the loss is flat.",
        (
            keras("An activation that never dies", "keras.layers.LeakyReLU(negative_slope=0.1)"),
            torch("An activation that never dies", "torch.nn.LeakyReLU(0.1)"),
            *SLOWER[:2],
        ),
    ),
    "output-loss-mismatch": Entry(
        "Last layer, loss and labels do not fit each other",
        "The loss expects another form of output or label than it gets: probabilities or logits, one column or one number. It then fails, or trains towards nothing.",
        "Shapes and activation of the last layer against what the loss is made for.",
        (
            keras(
                "Labels are class numbers",
                "model.compile(\n    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))\n# last layer: Dense(classes), no softmax",
            ),
            keras(
                "Two classes, one output",
                "model.compile(\n    loss=keras.losses.BinaryCrossentropy(from_logits=True))\n# last layer: Dense(1), labels of shape (batch, 1)",
            ),
            torch(
                "Labels are class numbers: logits in, integers as target",
                "loss = torch.nn.functional.cross_entropy(logits, labels.long())",
            ),
            torch(
                "Two classes, one output",
                "loss = torch.nn.functional.binary_cross_entropy_with_logits(\n    logits.squeeze(-1), labels.float())",
            ),
        ),
    ),
    "unscaled-input": Entry(
        "The features have very different scales",
        "Some are thousands of times larger than others, so one learning rate cannot fit all. Scaled to mean 0 and deviation 1 they train well.",
        "Per-feature ranges, and a first layer that saturates.",
        (
            keras(
                "Scale them in the model",
                "norm = keras.layers.Normalization()\nnorm.adapt(x_train)  # then put it first",
            ),
            python("Scale them once", "mean, deviation = x.mean(0), x.std(0) + 1e-8\nx = (x - mean) / deviation"),
        ),
    ),
    "learning-rate-too-low": Entry(
        "The learning rate is too low",
        "Each update moves the weights so little that training barely moves. Nothing is wrong otherwise.",
        "Updates are less than a millionth of the weights, and the loss falls in a straight, tiny slope.",
        (
            keras("Ten times the learning rate", "optimizer = keras.optimizers.Adam(learning_rate=1e-3)"),
            torch("Ten times the learning rate", "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)"),
        ),
    ),
    "batch-too-small-for-normalization": Entry(
        "A batch of one went through batch normalisation",
        "One value has no spread, so it cannot be normalised. It is usually the rest at the end of an epoch.",
        "The message itself, and a batch dimension of 1.",
        (
            torch("Leave out the rest at the end of an epoch", "DataLoader(dataset, batch_size=32, drop_last=True)"),
            torch("Normalise without the batch", "torch.nn.GroupNorm(8, 64)  # instead of BatchNorm2d(64)"),
            keras(
                "Leave out the rest at the end of an epoch",
                "dataset = dataset.unbatch().batch(32, drop_remainder=True)",
            ),
        ),
    ),
}
