"""A checkpoint keeps what is plain of the user's own objects; of a data set, never a copy of its cache."""

from __future__ import annotations

from types import SimpleNamespace

import numpy

from holdfast.inside.keras.plain_copies import LARGEST_BYTES, attributes_of

NOTHING: frozenset[str] = frozenset()


def test_an_order_and_a_few_figures_are_copied() -> None:
    order = numpy.arange(1000)
    found = attributes_of(SimpleNamespace(order=order, seen={"a": [1, 2.0]}, name="train"), NOTHING)
    assert found["seen"] == {"a": [1, 2.0]} and found["name"] == "train"
    assert found["order"] is not order and (found["order"] == order).all()


def test_a_cache_of_many_small_batches_is_left_alone() -> None:
    cache = {i: numpy.zeros((256, 1024), "float32") for i in range(80)}  # 1 MiB each
    found = attributes_of(SimpleNamespace(cache=cache, epoch=3), NOTHING, most_bytes=LARGEST_BYTES)
    assert found == {"epoch": 3}


def test_a_cache_of_files_as_they_were_read_is_left_alone() -> None:
    found = attributes_of(
        SimpleNamespace(files=[bytes(1 << 20) for _ in range(80)], epoch=3), NOTHING, most_bytes=LARGEST_BYTES
    )
    assert found == {"epoch": 3}


def test_a_callbacks_best_weights_are_kept_however_many_layers_there_are() -> None:
    weights = [numpy.zeros((256, 1024), "float32") for _ in range(80)]
    assert len(attributes_of(SimpleNamespace(best=weights), NOTHING)["best"]) == 80
