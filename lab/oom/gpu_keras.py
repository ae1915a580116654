"""Keras on torch, as it is written; nothing in it knows of Holdfast. `gpu_keras.py CAP_GIB ROWS RESULT.npy`."""

import json
import os
import sys
import time

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

cap, rows = float(sys.argv[1]), int(sys.argv[2])
if cap:
    torch.cuda.set_per_process_memory_fraction(cap * 2**30 / torch.cuda.get_device_properties(0).total_memory)
keras.utils.set_random_seed(1)
layers = keras.layers
body = [layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(9)]
model = keras.Sequential([layers.Input((64, 64, 3)), *body, layers.GlobalAveragePooling2D(), layers.Dense(10)])
model.compile(keras.optimizers.SGD(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
random = np.random.default_rng(0)
x, y = random.normal(size=(rows * 2, 64, 64, 3)).astype("f"), random.integers(0, 10, rows * 2)
began = time.perf_counter()
model.fit(x, y, batch_size=rows, epochs=3, shuffle=False, verbose=0)
seconds = time.perf_counter() - began
np.save(sys.argv[3], np.concatenate([np.asarray(weight, "float64").ravel() for weight in model.get_weights()]))
print(json.dumps({"peak_gib": torch.cuda.max_memory_reserved() / 2**30, "seconds": seconds}))
