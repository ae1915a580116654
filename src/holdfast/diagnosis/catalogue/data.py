"""The data, and files."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import Entry, jax, keras, python, shell, torch, words

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
            words("Start at your own line", "$frame"),
            torch("See what arrives there", "print(x.shape, model)  # then set in_features / channels to fit"),
            keras("See what the model expects", "print(model.input_shape, x.shape)\nmodel.summary()"),
            jax("See what arrives there", "print(jax.tree.map(jnp.shape, batch))"),
        ),
    ),
    "dtype-mismatch": Entry(
        "Types do not fit",
        "A tensor is of another number type than the operation takes: float64 instead of float32, text instead of numbers, float instead of class numbers. Converting it once, where the data is read, mends it.",
        "The two types in the message.",
        (
            torch("Convert what meets there", "x = x.$method()  # wanted $type_wanted, found $type_found"),
            words("Start at your own line", "$frame"),
            torch("Convert where the data comes in", "x, y = x.float(), y.long()"),
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
            torch("Enough rows for that id", "torch.nn.Embedding($rows, 128)  # ids go up to $index, rows were $size"),
            keras("Enough rows for that id", "keras.layers.Embedding($rows, 128)  # ids go up to $index"),
            torch("As many rows as ids", "torch.nn.Embedding(int(ids.max()) + 1, 128)"),
            keras("As many rows as ids", "keras.layers.Embedding(int(ids.max()) + 1, 128)"),
            torch("After adding tokens to a Hugging Face model", "model.resize_token_embeddings(len(tokenizer))"),
            shell("Get the real line of a device-side assert", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
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
            python(
                "Find damaged images",
                'from PIL import Image\nfor path in sorted(pathlib.Path("images").rglob("*.jpg")):\n    try:\n        Image.open(path).verify()\n    except Exception as error:\n        print(path, error)',
            ),
            shell("Large files may be pointers only", "git lfs pull"),
            shell("Fetch Keras weights again", "rm -r ~/.keras/models"),
        ),
    ),
    "missing-file": Entry(
        "A file is not there",
        "The script opened a path that does not exist. Paths are looked up from the directory the run was started in.",
        "The system's own error names the path.",
        (
            words("If it is to be written, make its folder first", 'os.makedirs("$folder", exist_ok=True)'),
            words("If it is to be read, look from the directory the run had", 'ls -l "$path"'),
        ),
    ),
    "checkpoint-mismatch": Entry(
        "The checkpoint is of another model",
        "Names or shapes in the saved weights differ from the model they are loaded into. Classes, layers or wrappers such as DataParallel make the difference.",
        "The names or shapes that the message lists.",
        (
            torch(
                "Take what fits, and see what does not",
                "fits = {k: v for k, v in saved.items() if k in own\n        and v.shape == own[k].shape}\nprint(model.load_state_dict(fits, strict=False))",
            ),
            torch("Saved from DataParallel or DDP", 'saved = {k.removeprefix("module."): v for k, v in saved.items()}'),
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
