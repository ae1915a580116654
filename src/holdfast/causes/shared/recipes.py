"""Recipes that several causes share."""

from __future__ import annotations

from holdfast.causes.form import KERAS, TORCH, Recipe, jax, keras, python, shell, torch

SMALLER_STEP = (
    keras("Feed the data in smaller pieces", "model.fit(dataset.batch(16))  # was a larger batch"),
    torch("Feed the data in smaller pieces", "DataLoader(dataset, batch_size=16, num_workers=2)  # was larger"),
    jax("Feed the data in smaller pieces", "for part in jnp.array_split(batch, 4):\n    update(part)"),
    python(
        "Do not hold the whole data set in memory", 'numpy.load("data.npy", mmap_mode="r")  # keeps only what is used'
    ),
)
# For a file that the evidence names. Both find it in the words of `detectors/files_read`, or in a line of the script's.
ARRAY_FILE = r"""(?:it was reading |["'])(?P<file>[^\s"']+\.(?:npy|npz|zarr))\b"""
TABLE_FILE = r"""(?:it was reading |["'])(?P<file>[^\s"']+\.(?:csv|tsv|parquet|pq))\b"""
_OPENED = (
    (
        ARRAY_FILE,
        'import holdfast.data\ndata = holdfast.data.open(\n    "$file", batch=32, shuffle=True,\n    labels="y.npy")  # their file, or their name in a .npz\n',
    ),
    (
        TABLE_FILE,
        'import holdfast.data\ndata = holdfast.data.open(\n    "$file", batch=32, shuffle=True,\n    labels="label")  # the column to learn\n',
    ),
)
STREAM_THE_FILE = tuple(
    make("Stream this very file: a few batches of it are in memory at a time", opened + used, said=named)
    for named, opened in _OPENED
    for make, used in (
        (keras, "model.fit(data.tensorflow(), epochs=10)"),
        (torch, "loader = torch.utils.data.DataLoader(data.torch(), batch_size=None)"),
        (jax, "for x, y in data:\n    update(x, y)"),
    )
)
# For what `memory_kinds` tells apart.
BY_KIND = (
    Recipe(
        "Keep the cache in a file, or cache before rows get large",
        'dataset.cache("/var/tmp/train-cache")  # was dataset.cache()',
        KERAS,
        when="input",
    ),
    Recipe(
        "Keep the cache in a file, or cache before rows get large",
        'dataset.cache("/var/tmp/train-cache")  # was dataset.cache()',
        KERAS,
        when="input cache",
    ),
    Recipe(
        "Shuffle what is small, then load: names of files instead of images",
        "files = tf.data.Dataset.from_tensor_slices(paths)\n"
        "dataset = files.shuffle(len(paths)).map(load)  # was map, then shuffle",
        KERAS,
        when="input shuffle",
    ),
    Recipe(
        "Prefetch as many batches as TensorFlow finds useful",
        "dataset.prefetch(tf.data.AUTOTUNE)  # after .batch(); was a number",
        KERAS,
        when="input prefetch",
    ),
    Recipe(
        "Evaluate in smaller batches than you train",
        "model.fit(x, y, validation_batch_size=16)",
        KERAS,
        when="evaluation",
    ),
    Recipe(
        "Evaluate without graphs, in smaller batches",
        "with torch.no_grad():\n    for x, y in DataLoader(held_back, batch_size=16):\n        loss = criterion(model(x), y)",
        TORCH,
        when="evaluation",
    ),
    Recipe(
        "Cut what is longer than most, and put alike lengths together",
        "dataset.map(lambda x, y: (x[:512], y)).bucket_by_sequence_length(\n"
        "    lambda x, y: tf.shape(x)[0], [128, 256, 512], [64, 32, 16, 8])",
        KERAS,
        when="longer",
    ),
    Recipe(
        "Cut what is longer than most, and put alike lengths together",
        "rows = [row[:512] for row in sorted(rows, key=len)]\n"
        "x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)",
        TORCH,
        when="longer",
    ),
    Recipe(
        "A smaller batch, with gradients accumulated to the old size",
        "keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)\n# and batch_size // 4",
        KERAS,
        when="batch",
    ),
    Recipe(
        "Keep the batch, in pieces that fit",
        "import holdfast\nloss = holdfast.backward(\n    model, lambda x, y: criterion(model(x), y), x, y)",
        TORCH,
        when="batch",
    ),
)
CLIP = (
    Recipe(
        "Clip the gradients",
        "keras.optimizers.$optimizer(global_clipnorm=1.0)  # the rest as it is",
        KERAS,
        when="optimizer",
    ),
    Recipe("Clip the gradients", "keras.optimizers.Adam(1e-3, global_clipnorm=1.0)", KERAS, without="optimizer"),
    torch("Clip the gradients", "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
    jax("Clip the gradients", "optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))"),
)
SCHEDULE = r"the learning rate: .* of the schedule (?P<schedule>\w+)"  # the words of `detectors/numerics/non_finite`
JUMPED = r"\(it was (?P<steady>[\d.e-]+) before, a jump"
STEADY = (
    keras(
        "Stay near the rate that it learned with",
        "optimizer.learning_rate = $steady\n# and no callback or schedule that raises it so far",
        said=JUMPED,
    ),
    torch(
        "Stay near the rate that it learned with",
        'for group in optimizer.param_groups:\n    group["lr"] = $steady\n# and no scheduler that raises it so far',
        said=JUMPED,
    ),
)
SLOWER = (
    Recipe(
        "Smaller rates in the schedule",
        "from keras.optimizers.schedules import $schedule\n"
        "schedule = $schedule($lower_rate, ...)  # the rest as it is\n"
        "optimizer = keras.optimizers.$optimizer(schedule)",
        KERAS,
        said=SCHEDULE,
    ),
    Recipe(
        "A smaller learning rate",
        "optimizer = keras.optimizers.$optimizer(learning_rate=$lower_rate)",
        KERAS,
        when="lower_rate",
        unsaid=SCHEDULE,
    ),
    Recipe(
        "A smaller learning rate",
        "optimizer = torch.optim.$optimizer(model.parameters(), lr=$lower_rate)",
        TORCH,
        when="lower_rate",
    ),
    Recipe(
        "A smaller learning rate",
        "optimizer = keras.optimizers.Adam(learning_rate=1e-4)",
        KERAS,
        without="lower_rate",
    ),
    Recipe(
        "A smaller learning rate",
        "optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)",
        TORCH,
        without="lower_rate",
    ),
    jax("A smaller learning rate", "optimizer = optax.adam(1e-4)"),
)
STACKS = (
    shell("See where every thread is", "holdfast stacks   # without Holdfast: py-spy dump --pid PID"),
    python(
        "Let it tell by itself next time", "import faulthandler\nfaulthandler.dump_traceback_later(600, repeat=True)"
    ),
)
COOLER = (shell("See clocks, temperature and why they are held", "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"),)
AMONG_RANKS = r"(?i)nccl|gloo|\brank\b|rendezvous|rdzv|TCPStore|c10d|init_process_group|torchrun|MASTER_PORT|29500"
