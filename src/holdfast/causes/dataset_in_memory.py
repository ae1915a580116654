from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, keras, python, rule, says, torch
from holdfast.causes.shared.recipes import STREAM_THE_FILE
from holdfast.causes.shared.words import HOST_WORDS

LOADING = r"(?:np|numpy)\.(?:load|array|asarray|stack|vstack|concatenate|zeros|empty|loadtxt|genfromtxt|fromfile|memmap)\(|read_(?:csv|pickle|parquet|hdf|json)\(|load_(?:data|dataset|images|svmlight)|\.todense\(|\.toarray\(|get_dummies|to_categorical|train_test_split|img_to_array|\.readlines\(\)|json\.load|pickle\.load|imread|\.append\(|pandas[/\\]|preprocess|sklearn[/\\]"
CAUSE = CauseRecord(
    id="dataset-in-memory",
    family="memory",
    title="The data set does not fit in memory",
    meaning="It is loaded as a whole before training begins, and is larger than what there is. Reading it piece by piece needs no more memory than a batch.",
    sure="The allocation that failed is in code that loads or converts data, before the first step.",
    says_more_than=("container-memory-limit", "host-memory-exhausted", "swap-thrash"),
    restart=RestartAdvice(RestartKind.ONCE_IF_KILLED, "killed for memory"),
    recipes=(
        *STREAM_THE_FILE,
        keras(
            "Hold the array once: from_tensor_slices and fit(x, y) copy it into TensorFlow",
            "class Rows(keras.utils.PyDataset):\n    def __init__(self, x, y):\n        super().__init__()\n"
            "        self.x, self.y = x, y\n    def __len__(self):\n        return -(-len(self.x) // 32)\n"
            "    def __getitem__(self, i):\n        part = slice(32 * i, 32 * i + 32)\n"
            "        return self.x[part], self.y[part]\nmodel.fit(Rows(x, y))",
            said="TensorFlow copied arrays",
        ),
        python("Open it without loading it", 'x = numpy.load("data.npy", mmap_mode="r")'),
        python("Read a table in pieces", 'for part in pandas.read_csv("data.csv", chunksize=100_000):\n    use(part)'),
        keras("Stream files instead of an array", 'keras.utils.image_dataset_from_directory("images", batch_size=32)'),
        torch(
            "Load one item at a time",
            'class Rows(torch.utils.data.Dataset):\n    def __init__(self, path):\n        self.x = numpy.load(path, mmap_mode="r")\n    def __len__(self):\n        return len(self.x)\n    def __getitem__(self, i):\n        return torch.from_numpy(self.x[i].copy())',
        ),
        python("Half the size by a smaller type", "x = x.astype(numpy.float32)  # numbers are float64 by default"),
    ),
    exceptions=(
        rule(
            0.85,
            says(
                "content is larger than 2GB",
                (
                    "tensorflow 2.21.0",
                    "ValueError: Cannot create a tensor proto whose content is larger than 2GB. Size of tensor is 6272000000 bytes.",
                ),
            ),
            says(
                "GraphDef cannot be larger than 2GB",
                ("tensorflow 2.21.0", "ValueError: GraphDef cannot be larger than 2GB. Received size: 2508801044."),
            ),
        ),
        rule(
            0.82,
            says(
                "MemoryError",
                (
                    "CPython 3.11.7",
                    'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    rows = open("big.txt").readlines()\nMemoryError',
                ),
            ),
            *HOST_WORDS,
            frames=LOADING,
        ),
    ),
)
