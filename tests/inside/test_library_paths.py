from __future__ import annotations

import json.decoder

import pytest

from holdfast.inside.library_paths import is_library


@pytest.mark.parametrize(
    "path",
    [
        "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/usr/lib64/python3.9/threading.py",
        "C:\\anaconda3\\lib\\json\\decoder.py",
        "<frozen importlib._bootstrap>",
        "/tmp/__autograph_generated_file1x.py",
        "/home/ada/holdfast/src/holdfast/inside/keras/step.py",
        json.decoder.__file__,
    ],
)
def test_libraries_are_told_by_where_they_lie(path: str) -> None:
    assert is_library(path)


@pytest.mark.parametrize(
    "path", ["/home/ada/train.py", "train.py", "<stdin>", "<ipython-input-3-2f>", "C:\\work\\a.py"]
)
def test_what_the_user_wrote_or_typed_is_theirs(path: str) -> None:
    assert not is_library(path)
