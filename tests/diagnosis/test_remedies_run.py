"""The remedies for a framework do what they say: executed with that framework and small stand-ins for the user's names."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
from typing import Any

import pytest

from holdfast.causes import CAUSES

NOT_HERE = {  # they need a GPU, other processes, files of the user's or a library that is not installed for tests
    "init_process_group", "torch.distributed.", "DistributedDataParallel", "DistributedSampler", 'torch.load("model.pt"', '"cuda"', "load_weights",
    "image_dataset_from_directory", "resize_token_embeddings", "set_start_method", "tf.config.threading", "enable_check_numerics",
    "optax", "load_state_dict", "register_buffer", "set_global_policy", "adapt(x_train)", "fit(dataset", "jax_debug_nans",
    "set_sharing_strategy", "train_step(x, tf", "torchvision",
}  # fmt: skip


def snippets(framework: str) -> list[tuple[str, str]]:
    found = [
        (name, recipe.how)
        for name, entry in CAUSES.items()
        for recipe in entry.recipes
        if recipe.framework == framework and recipe.language == "python" and "$" not in recipe.how
    ]
    return [(name, how) for name, how in found if not any(part in how for part in NOT_HERE)]


def execute(name: str, how: str, names: dict[str, Any]) -> None:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(how, name, "exec"), dict(names))
    except Exception as error:
        raise AssertionError(f"{name}: {how!r} raised {error!r}") from error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_torch_remedies_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import numpy
    import torch

    model = torch.nn.Linear(4, 2)
    x, y = torch.rand(8, 4), torch.randint(0, 2, (8,))
    dataset = torch.utils.data.TensorDataset(x, y)
    for name, how in snippets("torch"):
        loss = model(x).sum()
        execute(name, how, {
            "torch": torch, "numpy": numpy, "os": os, "DataLoader": torch.utils.data.DataLoader, "model": model, "dataset": dataset,
            "x": x, "y": y.float() if "log" in how else y, "p": torch.rand(8), "loss": loss, "losses": [], "outputs": [], "output": loss,
            "optimizer": torch.optim.SGD(model.parameters(), 0.1), "labels": y, "ids": y, "row": [1.0], "state": {},
            "logits": model(x) if "cross_entropy(logits" in how or "log_softmax" in how else model(x)[:, :1], "validate": lambda m: None, "epochs": 1,
            "loader": [(x, y)], "train_step": lambda batch: None, "saved": {"module.a": 1}, "self": None,
            "up": torch.rand(1, 2, 4, 4), "skip": torch.rand(1, 2, 5, 5), "held_back": dataset, "device": "cpu", "layer": model, "encoder": model, "highest": 1,
            "total": torch.rand(3), "count": torch.ones(3), "counts": torch.ones(3), "squares": torch.rand(3), "decode": lambda path: x[0].numpy(), "paths": ["a", "b"], "augment": lambda batch: batch, "criterion": torch.nn.CrossEntropyLoss(), "rows": [torch.arange(3), torch.arange(5)],
        })  # fmt: skip
    assert len(snippets("torch")) >= 18


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_keras_remedies_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    import keras
    import numpy
    import tensorflow as tf

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = numpy.random.rand(8, 4), numpy.arange(8) % 2
    for name, how in snippets("tensorflow"):
        execute(name, how, {
            "tf": tf, "keras": keras, "numpy": numpy, "model": model, "sample_weight": numpy.ones(8), "optimizer": "sgd", "encoder": model, "y_train": y,
            "total": tf.constant(1.0), "count": tf.constant(2.0), "squares": tf.constant(1.0), "x": x, "y": y, "p": tf.constant(0.5), "losses": [], "loss": tf.constant(1.0),
            "labels": y, "ids": y, "dataset": tf.data.Dataset.from_tensor_slices((x, y)).batch(4), "prepare": lambda a, b: (a, b), "paths": ["a", "b"], "load": lambda path: path, "decode": lambda a, b: (a, b), "augment": lambda a, b: (a, b),
        })  # fmt: skip
    assert len(snippets("tensorflow")) >= 15
