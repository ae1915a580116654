"""The data, and files."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import Entry, jax, keras, python, shell, torch, words

UNEQUAL_ROWS = (
    r"stack expects each tensor|each element in list of batch|Cannot batch tensors|different shapes in component"
)
WANTS_FLOATS = r"desired output type Long|Found dtype Long but expected|expected scalar type Float but found Long"
NUMPY_INDEX = r"index (?P<index>-?\d+) is out of bounds for axis \d+ with size (?P<size>\d+)"
DEVICE_ASSERT = r"(?i)device-side assert|cuda|vectorized_gather|\.cu:\d"
NAMED_FILE = r"(?:filepath=|File not found: )(?!filepath=)(?P<named>[^\s,;'\"]+?)[.,]?(?:\s|$)"
OPTIMIZER_STATE = r"parameter group|optimizer\.load_state_dict|opt\w*\.load_state_dict"

ENTRIES: dict[str, Entry] = {
    "shape-mismatch": Entry(
        "Shapes do not fit",
        "The model and the data, or two tensors, disagree about a size. The message names both.",
        "The two shapes in the message, at the layer or line it names.",
        (
            torch("Let the layer take what arrives", "torch.nn.Linear($got, $out)  # was Linear($want, $out)"),
            torch(
                "Let the layer take the channels that arrive",
                "torch.nn.Conv2d($got_channels, $filters, 3)  # it has $want_channels",
            ),
            keras(
                "Give it the features it was built for",
                "x = x.reshape(len(x), $want_features)  # if the rest fits into one",
            ),
            torch(
                "Bring the rows of a batch to one length",
                "def padded(batch):\n    rows, labels = zip(*batch)\n    rows = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)\n    return rows, torch.stack(labels)\n\nDataLoader(dataset, batch_size=32, collate_fn=padded)",
                said=UNEQUAL_ROWS,
            ),
            keras(
                "Bring the rows of a batch to one length",
                "dataset = dataset.padded_batch(32)  # instead of batch(32)",
                said=UNEQUAL_ROWS,
            ),
            torch(
                "Bring one to the other's height and width, then join them",
                "up = torch.nn.functional.interpolate(up, size=skip.shape[2:])\nx = torch.cat([up, skip], dim=1)",
                said=r"Sizes of tensors must match except in dimension 1",
            ),
            words("Start at your own line", "$frame"),
            torch(
                "See what arrives there",
                "print(x.shape, model)  # then set in_features / channels to fit",
                unsaid=UNEQUAL_ROWS,
            ),
            keras("See what the model expects", "print(model.input_shape, x.shape)\nmodel.summary()"),
            jax("See what arrives there", "print(jax.tree.map(jnp.shape, batch))"),
        ),
    ),
    "dtype-mismatch": Entry(
        "Types do not fit",
        "A tensor is of another number type than the operation takes: float64 instead of float32, text instead of numbers, float instead of class numbers. Converting it once, where the data is read, mends it.",
        "The two types in the message.",
        (
            torch("This loss wants its labels as floats", "y = y.float()", said=WANTS_FLOATS),
            torch("Convert what meets there", "x = x.$method()  # wanted $type_wanted, found $type_found"),
            words("Start at your own line", "$frame"),
            torch("Convert where the data comes in", "x, y = x.float(), y.long()", unsaid=WANTS_FLOATS),
            keras("Convert where the data comes in", 'x = x.astype("float32")  # or tf.cast(x, tf.float32)'),
            jax("Convert where the data comes in", "x = x.astype(jnp.float32)"),
        ),
    ),
    "label-out-of-range": Entry(
        "A label is beyond the number of classes",
        "The last layer has fewer outputs than the labels ask for, or labels start at 1 or are negative. On a GPU this shows as a device-side assert, often at another line.",
        "The largest and smallest label against the number of outputs, or the assertion's own text.",
        (
            torch("Enough outputs for that label", "torch.nn.Linear(128, $outputs)  # labels go up to $label"),
            keras("Enough outputs for that label", "keras.layers.Dense($outputs)  # labels go up to $label"),
            python("Look at the labels", "print(labels.min(), labels.max(), len(set(labels.tolist())))"),
            torch("As many outputs as classes, labels from 0", "torch.nn.Linear(128, int(labels.max()) + 1)"),
            keras("As many outputs as classes, labels from 0", "keras.layers.Dense(int(labels.max()) + 1)"),
            shell("Get the real line of a device-side assert", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
        ),
    ),
    "index-out-of-range": Entry(
        "An index is beyond the table",
        "A token id or an index is larger than the vocabulary or the dimension. Often the tokenizer has more entries than the embedding, or a sequence is too long for its positions.",
        "The largest index against the size, or the assertion's own text.",
        (
            python(
                "Find those that are beyond the table",
                "print(ids[(ids < -$size) | (ids >= $size)])  # ids start at 0",
                said=NUMPY_INDEX,
            ),
            torch(
                "Enough rows for that id",
                "torch.nn.Embedding($rows, 128)  # ids go up to $index, rows were $size",
                unsaid=NUMPY_INDEX,
            ),
            keras(
                "Enough rows for that id",
                "keras.layers.Embedding($rows, 128)  # ids go up to $index",
                unsaid=NUMPY_INDEX,
            ),
            torch("As many rows as ids", "torch.nn.Embedding(int(ids.max()) + 1, 128)", unsaid=NUMPY_INDEX),
            keras("As many rows as ids", "keras.layers.Embedding(int(ids.max()) + 1, 128)", unsaid=NUMPY_INDEX),
            torch(
                "After adding tokens to a Hugging Face model",
                "model.resize_token_embeddings(len(tokenizer))",
                unsaid=NUMPY_INDEX,
            ),
            shell(
                "Get the real line of a device-side assert",
                "CUDA_LAUNCH_BLOCKING=1 python train.py",
                said=DEVICE_ASSERT,
            ),
        ),
    ),
    "data-exhausted": Entry(
        "The data ended before the steps did",
        "Fewer batches came than steps were asked for; the rest was not trained. A generator or iterator is used up after one pass.",
        "The framework says so, or fewer steps were done than asked for.",
        (
            keras("Let the data start over", "dataset = dataset.repeat()"),
            keras("Ask for the steps there are", "model.fit(dataset, epochs=10)  # no steps_per_epoch"),
            torch(
                "Begin again at the end",
                "for epoch in range(epochs):\n    for batch in loader:\n        train_step(batch)",
            ),
        ),
    ),
    "corrupt-file": Entry(
        "A file is damaged",
        "It is cut off, empty, or no file of its kind: an interrupted download or save is the usual reason. It has to be fetched or written again.",
        "The reader's own complaint about the file's form.",
        (
            words("Look at it, then fetch it again", 'ls -l "$path"; file "$path"'),
            words("Fetch or write again the file that is read here", "$frame"),
            python(
                "Find damaged images",
                'from PIL import Image\nfor path in sorted(pathlib.Path("images").rglob("*.jpg")):\n    try:\n        Image.open(path).verify()\n    except Exception as error:\n        print(path, error)',
                said=r"(?i)image|jpe?g|\bpng\b|\bgif\b|\bbmp\b",
            ),
            python(
                "Write it so that what is interrupted leaves the old one",
                'with open("data.tmp", "wb") as file:\n    file.write(content)\nos.replace("data.tmp", "data.bin")',
                said=r"(?i)truncat|ran out of input|unexpected end|not a zip file|central directory|EOFError",
            ),
            shell(
                "Large files may be pointers only",
                "git lfs pull",
                said=r"(?i)invalid load key, 'v'|signature not found|not a zip file|header|magic|protobuf",
            ),
            shell("Fetch Keras weights again", "rm -r ~/.keras/models", said=r"\.keras[/\\]models"),
        ),
    ),
    "missing-file": Entry(
        "A file is not there",
        "The script opened a path that does not exist. Paths are looked up from the directory the run was started in.",
        "The system's own error names the path.",
        (
            words("If it is to be written, make its folder first", 'os.makedirs("$folder", exist_ok=True)'),
            words("If it is to be read, look from the directory the run had", 'ls -l "$path"'),
            words("If it is to be read, look from the directory the run had", 'ls -l "$named"', said=NAMED_FILE),
        ),
    ),
    "checkpoint-mismatch": Entry(
        "The checkpoint is of another model",
        "Names or shapes in the saved weights differ from the model they are loaded into. Classes, layers or wrappers such as DataParallel make the difference.",
        "The names or shapes that the message lists.",
        (
            torch(
                "Begin the optimizer's state anew, for the parameters there are now",
                "optimizer = torch.optim.Adam(model.parameters())  # not loaded",
                said=OPTIMIZER_STATE,
            ),
            torch(
                "Take what fits, and see what does not",
                "fits = {k: v for k, v in saved.items() if k in own\n        and v.shape == own[k].shape}\nprint(model.load_state_dict(fits, strict=False))",
                unsaid=OPTIMIZER_STATE,
            ),
            torch(
                "Saved from DataParallel or DDP",
                'saved = {k.removeprefix("module."): v for k, v in saved.items()}',
                unsaid=OPTIMIZER_STATE,
            ),
            keras("Take what fits", 'model.load_weights("old.weights.h5", skip_mismatch=True)'),
        ),
    ),
    "input-starvation": Entry(
        "Training waits for its data",
        "The model is ready for the next batch long before the batch is. Reading or preparing the data takes longer than the step.",
        "The share of step time spent waiting for the next batch.",
        (
            torch(
                "Prepare batches in parallel and ahead",
                "DataLoader(dataset, num_workers=4, prefetch_factor=4,\n           persistent_workers=True)",
            ),
            keras(
                "Prepare batches in parallel and ahead",
                "dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.prefetch(tf.data.AUTOTUNE)",
            ),
            keras("Do the costly part once", "dataset = dataset.cache()  # before shuffle and batch"),
        ),
    ),
}
