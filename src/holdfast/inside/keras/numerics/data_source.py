"""Where the rows of a batch lie in the data that `fit` was given."""

from __future__ import annotations

import sys
from typing import Any, Iterator, List

from ...numerics.events import BadInput
from ...tensorflow import seams as tf_seams
from ...tensorflow.numerics.bad_rows import indices_in
from .. import seams

DEPTH = 20  # of a data set's stages


def searched(bad: BadInput, batch: Any, epoch_iterator: Any, finite: bool = False) -> None:
    """Adds the rows' indices, or that the source is clean and the batch is not. `finite`: the rows are too large instead."""
    clean = []
    for source in sources(epoch_iterator):
        indices, is_clean = indices_in(source, batch, bad.get("rows", []), finite)
        if indices:
            bad["indices"], bad["source_clean"] = indices, False
            return
        if is_clean is not None:
            clean.append(is_clean)
    if clean:
        bad["source_clean"] = all(clean)


def sources(epoch_iterator: Any) -> Iterator[Any]:
    """Arrays whose rows are those of the batches."""
    adapter = getattr(epoch_iterator, "data_adapter", None)
    kind = type(adapter).__name__
    given: List[Any] = []
    if kind == "ArrayDataAdapter":
        given = _flat(seams.arrays_of(adapter))
    elif kind == "TFDatasetAdapter":
        given = _slices(seams.dataset_of(epoch_iterator))
    numpy: Any = sys.modules["numpy"]
    for one in given:
        if hasattr(one, "__array__") and getattr(one, "shape", None):
            yield numpy.asarray(one)


def _flat(data: Any) -> List[Any]:
    return [one for one in sys.modules["tensorflow"].nest.flatten(data) if one is not None]


def _slices(dataset: Any) -> List[Any]:
    """Of `from_tensor_slices` somewhere below."""
    below = [dataset]
    for _ in range(DEPTH):
        for one in below:
            if type(one).__name__ == "_TensorSliceDataset" and tf_seams.tensors_of(one) is not None:
                return list(tf_seams.tensors_of(one))
        below = [inner for one in below if hasattr(one, "_inputs") for inner in tf_seams.inputs_of(one)]
    return []
