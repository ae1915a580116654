from __future__ import annotations

from holdfast.causes.form import KERAS, TORCH, CauseRecord, Recipe, rule, says

CAUSE = CauseRecord(
    id="input-starvation",
    family="data",
    title="Training waits for its data",
    meaning="The model is ready for the next batch long before the batch is. Reading or preparing the data takes longer than the step.",
    sure="The share of step time spent waiting for the next batch.",
    slows=True,
    recipes=(
        Recipe(
            "Prepare batches in parallel and ahead: a step about $gain times as fast",
            "DataLoader(dataset, num_workers=$workers, prefetch_factor=4,\n           persistent_workers=True)",
            TORCH,
            when="workers",
        ),
        Recipe(
            "Leave Python out of tf.data, or give it processes: its lock lets one row be prepared at a time",
            "class Rows(keras.utils.PyDataset):\n    def __len__(self): return len(x) // 32\n"
            "    def __getitem__(self, i): ...  # batch i, as arrays\n"
            "model.fit(Rows(workers=$processes, use_multiprocessing=True))",
            KERAS,
            when="python in tf.data",
        ),
        Recipe(
            "Prepare several rows at a time, and batches ahead",
            "dataset = dataset.$call($function, num_parallel_calls=tf.data.AUTOTUNE)\n"
            "dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last",
            KERAS,
            when="one row after another",
        ),
        Recipe(
            "Prepare batches ahead", "dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last", KERAS, when="not ahead"
        ),
        Recipe(
            "Decode and resize once, and keep what comes out",
            "dataset = dataset.map(decode).cache('/var/tmp/decoded')\ndataset = dataset.map(augment)  # behind it: what is random",
            KERAS,
            when="decode by TensorFlow",
        ),
        Recipe(
            "Read from a disk of this machine",
            "rsync -a $folder/ /var/tmp/data/   # and open it there",
            language="shell",
            when="network read",
        ),
        Recipe(
            "Read large pieces ahead, instead of a file for each row",
            'import holdfast.data\ndata = holdfast.data.open("data.npy", labels="y.npy",\n                          batch=32, shuffle=True)',
            when="read",
        ),
        Recipe(
            "Decode once, and keep what comes out",
            'rows = numpy.stack([decode(path) for path in paths])\nnumpy.save("decoded.npy", rows)\n'
            'data = holdfast.data.open("decoded.npy", labels="y.npy", batch=32)',
            when="decode",
        ),
        Recipe(
            "Resize once, and keep the small images",
            'image = Image.open(path).convert("RGB").resize((224, 224))\nimage.save(small / path.name)  # once, for each of them',
            when="resize",
        ),
        Recipe(
            "Augment whole batches where the model computes",
            "augment = torchvision.transforms.v2.RandomHorizontalFlip()\nfor x, y in loader:\n"
            "    x = augment(x.to(device))  # a whole batch at once",
            TORCH,
            when="augment",
        ),
        Recipe(
            "Augment whole batches where the model computes",
            'model = keras.Sequential([\n    keras.layers.RandomFlip("horizontal"),  # by batch\n    model])',
            KERAS,
            when="augment",
        ),
        Recipe(
            "Hand batches over without copying them once more",
            "DataLoader(dataset, pin_memory=True)\nx = x.to(device, non_blocking=True)",
            TORCH,
            when="transfer",
        ),
        Recipe(
            "Prepare batches in parallel and ahead",
            "DataLoader(dataset, num_workers=4, prefetch_factor=4,\n           persistent_workers=True)",
            TORCH,
            without="workers",
        ),
        Recipe(
            "Prepare batches in parallel and ahead",
            "dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.prefetch(tf.data.AUTOTUNE)",
            KERAS,
            without="known pipeline",
        ),
        Recipe(
            "Do the costly part once",
            "dataset = dataset.cache()  # before shuffle and batch",
            KERAS,
            without="decode by TensorFlow",
        ),
    ),
    lines=(
        rule(
            0.88,
            says(
                "program is (?:HIGHLY|MODERATELY) input-bound",
                ("tensorflow 2.21.0", "Your program is MODERATELY input-bound because"),
            ),
        ),
    ),
)
