"""A remedy is for what the message says: nobody with a damaged table is told to look at images."""

from __future__ import annotations

import pytest

from holdfast.diagnosis.remedies import remedies_for
from holdfast.vocabulary import Evidence, Finding

FRAME = "train.py:18 in <module>"


def remedies(cause: str, said: str, framework: str = "torch") -> list[str]:
    finding = Finding(cause, 0.9, (Evidence(said, "stderr"),), {"frame": FRAME})
    return [remedy.how for remedy in remedies_for(finding, framework)]


@pytest.mark.parametrize(
    ("cause", "said", "framework", "first"),
    [
        (
            "shape-mismatch",
            "RuntimeError: stack expects each tensor to be equal size, but got [20] at entry 0 and [19] at entry 1",
            "torch",
            "pad_sequence",
        ),
        (
            "shape-mismatch",
            "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 44 but got size 45 for tensor number 1 in the list.",
            "torch",
            "size=skip.shape[2:]",
        ),
        (
            "dtype-mismatch",
            "RuntimeError: result type Float can't be cast to the desired output type Long",
            "torch",
            "y = y.float()",
        ),
        ("index-out-of-range", "IndexError: index 5 is out of bounds for axis 0 with size 5", "tensorflow", "ids >= 5"),
        (
            "checkpoint-mismatch",
            "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            "torch",
            "torch.optim.Adam(model.parameters())",
        ),
        (
            "api-incompatible",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded",
            "torch",
            "weights_only=False",
        ),
        (
            "api-incompatible",
            "ValueError: Argument(s) not recognized: {'lr': 0.001}",
            "tensorflow",
            "learning_rate=1e-3",
        ),
        (
            "dependency-conflict",
            "ModuleNotFoundError: No module named 'albumentations'",
            "torch",
            "pip install albumentations",
        ),
        (
            "dependency-conflict",
            "ModuleNotFoundError: No module named 'sklearn.svm'",
            "torch",
            "pip install scikit-learn",
        ),
        (
            "network-lost",
            "Exception: URL fetch failure on https://storage.googleapis.com/t/x.gz: None -- [Errno -2] Name or service not known",
            "tensorflow",
            "curl -fLO 'https://storage.googleapis.com/t/x.gz'",
        ),
        (
            "missing-file",
            "ValueError: File not found: filepath=weights/backbone.keras. Please ensure the file is accessible",
            "tensorflow",
            'ls -l "weights/backbone.keras"',
        ),
        ("invalid-math", "ValueError: math domain error", "tensorflow", "math.log(max("),
        ("port-in-use", "[W] The server socket has failed to bind to [::]:29611", "torch", "grep 29611"),
    ],
)
def test_what_the_message_asks_for_comes_first(cause: str, said: str, framework: str, first: str) -> None:
    assert first in remedies(cause, said, framework)[0]


@pytest.mark.parametrize(
    ("cause", "said", "framework", "beside_the_point"),
    [
        ("corrupt-file", "_pickle.UnpicklingError: pickle data was truncated", "torch", "PIL"),
        ("corrupt-file", "zipfile.BadZipFile: File is not a zip file", "tensorflow", ".keras/models"),
        ("dtype-mismatch", "RuntimeError: Found dtype Long but expected Float", "torch", "y.long()"),
        ("index-out-of-range", "IndexError: index 5 is out of bounds for axis 0 with size 5", "torch", "Embedding"),
        ("port-in-use", "OSError: [Errno 98] Address already in use", "torch", "torchrun"),
        ("network-lost", "socket.gaierror: [Errno -2] Name or service not known", "torch", "NCCL"),
        ("checkpoint-mismatch", "ValueError: loaded state dict has a different number of parameter groups", "torch", "own[k]"),
    ],
)  # fmt: skip
def test_what_mends_something_else_is_left_out(cause: str, said: str, framework: str, beside_the_point: str) -> None:
    found = remedies(cause, said, framework)
    assert found
    assert not any(beside_the_point in how for how in found)


def test_text_of_a_log_does_not_reach_the_shell_as_a_command() -> None:
    said = "URL fetch failure on https://host/a';rm -rf x;': None"
    assert not any("rm" in how for how in remedies("network-lost", said))
    assert not any("rm" in how for how in remedies("dependency-conflict", "No module named 'a;rm -rf x'"))
