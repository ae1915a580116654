"""What a tf.data pipeline keeps in memory, told when an iterator over it is made: shuffle buffers, prefetched batches, cache();
and, beside it, what it does (`pipeline_stages.py`).

They are filled in native code, where nothing of it can be seen; and a shuffle buffer is filled before the first batch.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any, Iterator, Optional

from ..never_raise import guarded
from ..telemetry import Recorder
from . import seams
from .pipeline_stages import stages_of

WORTH_TELLING_BYTES = 32 << 20
MOST_DATASETS = 200  # of a pipeline that are looked at
MOST_TOLD = 20  # pipelines and buffers of a run
KINDS = {"Shuffle": "shuffle", "Prefetch": "prefetch", "Cache": "cache"}


def take_over_creation(recorder: Recorder) -> None:
    owned = seams.iterator_class()
    create = getattr(owned, seams.CREATE, None)
    if create is None or not seams.knows_inputs():
        return
    told: set[str] = set()
    tell, tell_stages = (guarded(functools.partial(one, recorder, told)) for one in (_tell, _tell_stages))

    @functools.wraps(create)
    def _create_iterator(self: Any, dataset: Any) -> Any:
        tell(dataset)
        tell_stages(dataset)
        return create(self, dataset)

    setattr(owned, seams.CREATE, _create_iterator)


def _tell(recorder: Recorder, told: set[str], dataset: Any) -> None:
    """Each kind and size once: an epoch makes an iterator of its own."""
    for kind, elements, size in kept_by(dataset):
        key = f"{kind} {elements} {size}"
        if elements * size >= WORTH_TELLING_BYTES and key not in told:
            told.add(key)
            recorder.event("data.kept", what=kind, elements=elements, element_bytes=size)


def _tell_stages(recorder: Recorder, told: set[str], dataset: Any) -> None:
    if len(told) > MOST_TOLD:
        return
    found = stages_of(parts_of(dataset))
    if found["calls"] and repr(found) not in told:
        told.add(repr(found))
        recorder.event("data.pipeline", **found)


def kept_by(dataset: Any) -> Iterator[tuple[str, int, int]]:
    """What each part keeps: its kind, at most how many elements, and the bytes of one. Parts whose elements have no known
    size are left out."""
    for part in parts_of(dataset):
        kind = next((kind for name, kind in KINDS.items() if name in type(part).__name__), None)
        size = _bytes(part.element_spec, _batch_size(part)) if kind else None
        length = int(part.cardinality())  # negative where it is endless or not known
        held = seams.elements_kept(part) if kind != "cache" else None if seams.cache_file(part) else length
        if kind and size and held is not None and held > 0:
            yield kind, min(held, length) if length > 0 else held, size


def parts_of(dataset: Any) -> Iterator[Any]:
    waiting = [dataset]
    seen: set[int] = set()
    while waiting and len(seen) < MOST_DATASETS:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting += seams.inputs_of(part)


def _batch_size(dataset: Any) -> Optional[int]:
    """Of the nearest batch before it."""
    while True:
        size = seams.batch_size_of(dataset)
        inputs = seams.inputs_of(dataset)
        if size is not None or len(inputs) != 1:
            return size
        dataset = inputs[0]


def _bytes(spec: Any, batch: Optional[int]) -> Optional[int]:
    """Of one element; None where a dimension other than the batch's is not known."""
    total = 0
    for leaf in seams.flat(spec):
        shape: Any = getattr(leaf, "shape", None)
        dtype: Any = getattr(leaf, "dtype", None)
        if shape is None or shape.rank is None or not getattr(dtype, "size", 0):
            return None
        sizes: list[Any] = [batch if axis == 0 and size is None else size for axis, size in enumerate(shape)]
        if None in sizes:
            return None
        total += int(dtype.size * prod(sizes))
    return total
