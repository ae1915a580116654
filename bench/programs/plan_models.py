"""A training script of one of many kinds: `plan_models.py FRAMEWORK KIND OPTIMIZER PRECISION BATCH [STEPS]`.

It knows nothing of Holdfast. With STEPS it ends after so many and prints the most memory it held, without mapped files.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
# On a busy machine threads wait for each other; one is as good for memory.
os.environ |= {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
framework, kind, optimizer_name, precision, batch = *sys.argv[1:5], int(sys.argv[5])
steps = int(sys.argv[6]) if len(sys.argv) > 6 else 10**9
ROWS = 64  # of data, over and over: what is held does not depend on the batch
WORDS, LENGTH = 20000, 48
SHAPES = {"dense": (768,), "cnn": (3, 32, 32), "unet": (3, 48, 48), "lstm": (32, 64), "transformer": (48, 96)}


def torch_model():
    import torch
    from torch import nn

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.LSTM(64, 192, 2, batch_first=True), nn.Linear(192, 10)

        def forward(self, x):
            return self.head(self.body(x)[0][:, -1])

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(96, 4, 384, batch_first=True)
            self.body, self.head = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(96, 10)

        def forward(self, x):
            return self.head(self.body(x).mean(1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([self.block(3, 16), self.block(16, 32)])
            self.middle = self.block(32, 64)
            self.up = nn.ModuleList([self.block(64 + 32, 32), self.block(32 + 16, 16)])
            self.pool, self.wide, self.head = nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.Conv2d(16, 10, 1)

        @staticmethod
        def block(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

        def forward(self, x):
            kept = []
            for block in self.down:
                kept.append(block(x))
                x = self.pool(kept[-1])
            x = self.middle(x)
            for block, old in zip(self.up, reversed(kept)):
                x = block(torch.cat([self.wide(x), old], 1))
            return self.head(x).mean((2, 3))

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.hidden, self.head = nn.Embedding(WORDS, 256), nn.Linear(256, 512), nn.Linear(512, WORDS)

        def forward(self, x):
            return self.head(torch.relu(self.hidden(self.words(x).mean(1))))

    layers = [layer for _ in range(6) for layer in (nn.Linear(768, 768), nn.ReLU())]
    blocks = [layer for _ in range(4) for layer in (nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)]
    return {
        "dense": lambda: nn.Sequential(*layers, nn.Linear(768, 10)),
        "cnn": lambda: nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), *blocks, *tail),
        "unet": UNet, "lstm": Lstm, "transformer": Transformer, "embedding": Words,
    }[kind]()  # fmt: skip


def in_torch():
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(0)
    words = kind == "embedding"
    x = torch.randint(0, WORDS, (ROWS, LENGTH)) if words else torch.randn(ROWS, *SHAPES[kind])
    y = torch.randint(0, 10, (ROWS,))

    class Repeated(Dataset):
        def __len__(self):
            return 10**7

        def __getitem__(self, index):
            return x[index % ROWS], y[index % ROWS]

    model = torch_model()
    make = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimizer_name]
    optimizer = make(model.parameters(), lr=1e-3)
    for number, (inputs, targets) in enumerate(DataLoader(Repeated(), batch_size=batch)):
        if number == steps:
            break
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "mixed"):
            loss = torch.nn.functional.cross_entropy(model(inputs).float(), targets)
        loss.backward()
        optimizer.step()


def keras_model():
    import keras
    from keras import layers as L

    if kind == "embedding":
        body = [
            L.Input((LENGTH,)),
            L.Embedding(WORDS, 256),
            L.GlobalAveragePooling1D(),
            L.Dense(512, activation="relu"),
        ]
        return keras.Sequential([*body, L.Dense(WORDS, dtype="float32")])
    shape = SHAPES[kind] if len(SHAPES[kind]) != 3 else (*SHAPES[kind][1:], SHAPES[kind][0])
    x = inputs = L.Input(shape)

    def block(x, width):
        return L.ReLU()(L.BatchNormalization()(L.Conv2D(width, 3, padding="same")(x)))

    if kind == "dense":
        for _ in range(6):
            x = L.Dense(768, activation="relu")(x)
    elif kind == "cnn":
        for _ in range(5):
            x = block(x, 24)
        x = L.GlobalAveragePooling2D()(x)
    elif kind == "lstm":
        x = L.LSTM(192)(L.LSTM(192, return_sequences=True)(x))
    elif kind == "transformer":
        for _ in range(3):
            x = L.LayerNormalization()(x + L.Dropout(0.1)(L.MultiHeadAttention(4, 24)(x, x)))
            x = L.LayerNormalization()(x + L.Dense(96)(L.Dense(384, activation="relu")(x)))
        x = L.GlobalAveragePooling1D()(x)
    else:
        kept = []
        for width in (16, 32):
            kept.append(block(x, width))
            x = L.MaxPooling2D()(kept[-1])
        x = block(x, 64)
        for width, old in zip((32, 16), reversed(kept)):
            x = block(L.Concatenate()([L.UpSampling2D()(x), old]), width)
        x = L.GlobalAveragePooling2D()(L.Conv2D(10, 1)(x))
    return keras.Model(inputs, L.Dense(10, dtype="float32")(x))


def in_keras():
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    if precision == "mixed":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = keras_model()
    x = np.random.normal(size=(ROWS, *model.input_shape[1:])).astype("float32")
    if kind == "embedding":
        x = np.random.randint(0, WORDS, (ROWS, LENGTH))
    y = np.random.randint(0, 10, ROWS)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch)
    model.compile(optimizer_name, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, steps_per_epoch=min(steps, 10**6), epochs=1, verbose=0)


{"torch": in_torch, "keras": in_keras}[framework]()
with open("/proc/self/status") as file:
    status = {line.split(":")[0]: line.split()[1] for line in file if line.startswith(("VmHWM", "RssFile"))}
print(json.dumps({"peak_bytes": (int(status["VmHWM"]) - int(status["RssFile"])) << 10}))
