"""What a model in training consists of, read in an instant and put back bit for bit: variables, callbacks, randomness."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import weakref
import zipfile
from typing import Any, Callable, Iterable, Optional, Protocol, Sequence

from ..tensorflow.variable_values import AT_ONCE_BYTES, nbytes_of
from . import seams
from .plain_copies import attributes_of, attributes_of_classes, put_back, put_back_classes

ARRAYS = "variables.npz"
PIECE_BYTES = 1 << 20  # written at a time


class BackendState(Protocol):
    """What is different from one backend of Keras to another: `on_tensorflow`, `on_torch`, `on_jax`."""

    pulls_in_walk: bool
    is_of_tf_data: bool  # which counts the iterators that are made, and reads ahead of training

    def why_not(self, model: Any, adapter: Any = None) -> str: ...

    def random_state(self) -> dict[str, Any]: ...
    def put_random_state(self, state: dict[str, Any]) -> None: ...
    def read(self, variable: Any) -> Any: ...
    def put(self, variable: Any, archive: Any, name: str, described: list[Any]) -> None: ...
    def needs_iterator_state(self, adapter: Any) -> bool: ...
    def iterator_state(self, iterator: Any) -> Any: ...
    def put_iterator_state(self, iterator: Any, state: Any) -> None: ...
    def pull(self, iterator: Any) -> None: ...
    def loader_state(self, epoch_iterator: Any) -> Any: ...
    def put_loader_state(self, epoch_iterator: Any, state: Any) -> None: ...
    def epoch_iterator(self, model: Any, **given: Any) -> Any: ...
    def build(self, model: Any, epoch_iterator: Any) -> None: ...


class Mismatch(Exception):
    """The script is not the one that was saved."""


def variables_of(model: Any) -> list[Any]:
    """Weights, seeds, optimizer with its slots and loss scale, metrics; in an order that a rerun repeats."""
    found: list[Any] = [*model.variables]
    for optimizer in optimizers_of(model):
        found += optimizer.variables
    found += model.metrics_variables
    seen: set[int] = set()
    return [v for v in found if not (id(v) in seen or seen.add(id(v)))]  # type: ignore[func-returns-value]


def optimizers_of(model: Any) -> list[Any]:
    """The one it is compiled with, and those that its own `train_step` uses: attributes of it or of its layers."""
    kind, found = seams.optimizer_class(), [getattr(model, "optimizer", None)]
    for layer in seams.layers_of(model):
        for held in list(vars(layer).values()):
            inner = held.values() if isinstance(held, dict) else held if isinstance(held, (list, tuple)) else (held,)
            found += [one for one in inner if isinstance(one, kind)]
    return list({id(one): one for one in found if one is not None}.values())


def trained_by_each(model: Any) -> list[Any]:
    """Of each of its optimizers the numbers of the variables it was built for; None before that, as for one that is never used."""
    numbers = {id(variable): number for number, variable in enumerate(model.variables)}
    found = [(one.built, [numbers.get(id(v)) for v in seams.trained_by(one)]) for one in optimizers_of(model)]
    return [trained if is_built and None not in trained else None for is_built, trained in found]


def build_optimizers(model: Any, trained: Optional[Sequence[Any]]) -> None:
    """Tracing the step has built everything; where it runs eagerly, optimizers may still be without their slots. Checkpoints
    of versions that saved one optimizer only do not say what it trained: all that is trainable."""
    variables = list(model.variables)
    if trained is None:
        position = {id(variable): number for number, variable in enumerate(variables)}
        trained = [[position[id(variable)] for variable in model.trainable_variables]]
    for optimizer, numbers in zip(optimizers_of(model), trained):
        if numbers is not None and not optimizer.built:
            optimizer.build([variables[number] for number in numbers])


class Taken:
    """Variables as they were at one moment. Taken on the training thread, before the batch that is due."""

    def __init__(self, variables: list[Any], state: BackendState) -> None:
        self.index = [describe(variable) for variable in variables]
        self._values = [state.read(variable) for variable in variables]

    def nbytes(self) -> int:
        return sum(nbytes_of(shape, dtype) for _, shape, dtype in self.index)

    def write(self, path: str) -> None:
        write_values(path, self._values)


def write_values(path: str, values: Iterable[Any]) -> None:
    """As an archive of arrays, by their numbers."""
    with Drained(path, "wb") as drained, zipfile.ZipFile(drained, "w", zipfile.ZIP_STORED) as archive:
        for number, value in enumerate(values):
            array = _as_stored(value)
            with archive.open(f"{number}.npy", "w", force_zip64=True) as file:
                _write_array(file, array)


def _write_array(file: Any, array: Any) -> None:
    """As NumPy does, which copies 16 MB at a time: memory that the allocator keeps for the writing thread (+200 MB after 36
    saves of 20 MB were seen)."""
    numpy_format: Any = sys.modules["numpy"].lib.format
    if array.dtype.hasobject or not array.flags.c_contiguous:
        numpy_format.write_array(file, array, allow_pickle=array.dtype.hasobject)
        return
    numpy_format.write_array_header_1_0(file, numpy_format.header_data_from_array_1_0(array))
    if array.size:
        elements = memoryview(array.reshape(-1).view("u1"))
        for begin in range(0, len(elements), PIECE_BYTES):
            file.write(elements[begin : begin + PIECE_BYTES])


class Drained(io.FileIO):
    """What is written does not pile up: pages that wait for the disk are the container's, and cannot be dropped."""

    _waiting = 0

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while len(left):
            left = left[super().write(left) :]
        self._waiting += size
        if self._waiting >= AT_ONCE_BYTES:
            self._waiting = 0
            os.fdatasync(self.fileno())
            with contextlib.suppress(OSError):  # not every file system takes advice
                os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return size


def _as_stored(value: Any) -> Any:
    """A tensor, an array or a scalar (what a GPU's 0-d variable is read as), as an array that NumPy's format can hold."""
    numpy: Any = sys.modules["numpy"]
    if hasattr(value, "numpy"):  # which makes a copy
        value = value.__array__() if hasattr(value, "__array__") else value.numpy()
    if isinstance(value, (bytes, str)):
        return numpy.array(value, dtype=object)  # NumPy's own type of text drops zeros at its end
    array = numpy.asarray(value)
    if array.dtype.hasobject or (array.dtype.kind != "V" and array.dtype.name in numpy.sctypeDict):
        return array
    return array.view(f"u{array.dtype.itemsize}")  # bfloat16 and the like: NumPy's format has no name for it


def describe(variable: Any) -> list[Any]:
    return [str(getattr(variable, "path", variable.name)), [int(n) for n in variable.shape], str(variable.dtype)]


def put_variables(variables: list[Any], index: list[Any], path: str, state: BackendState) -> None:
    check_alike([describe(variable) for variable in variables], index)
    numpy: Any = sys.modules["numpy"]
    with numpy.load(path, allow_pickle=True) as archive:  # strings; what lies beside it is a pickle, too
        for number, variable in enumerate(variables):
            state.put(variable, archive, str(number), index[number])


def check_alike(here: list[Any], saved: list[Any]) -> None:
    for ours, theirs in zip(here, saved):
        if list(ours) != list(theirs):
            raise Mismatch(f"the model has {_named(ours)} where {_named(theirs)} was saved")
    if len(here) != len(saved):
        raise Mismatch(f"the model has {len(here)} variables, {len(saved)} were saved")


def _named(entry: list[Any]) -> str:
    path, shape, dtype = entry
    return f"{path} {tuple(shape)} {dtype}"


# -- callbacks

CLASSES = " classes"  # what the classes of a callback hold for all of their instances, beside its own attributes


def callbacks_state(callbacks: Iterable[Any]) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for callback in callbacks:
        kind = type(callback)
        of_keras = kind.__module__.startswith("keras.")
        attributes = attributes_of(callback, seams.OF_A_CALLBACK, share_arrays=of_keras)
        found.append((kind.__name__, attributes if of_keras else {**attributes, CLASSES: attributes_of_classes(kind)}))
    return found


def put_callbacks(callbacks: list[Any], saved: list[tuple[str, dict[str, Any]]]) -> None:
    names = [type(callback).__name__ for callback in callbacks]
    # A progress bar is there or not as the attempt was started; it has nothing to go on from.
    if [n for n in names if n != "ProgbarLogger"] != [n for n, _ in saved if n != "ProgbarLogger"]:
        raise Mismatch(f"the callbacks are {', '.join(names)}; saved were {', '.join(n for n, _ in saved)}")
    kept = iter([entry for entry in saved if entry[0] != "ProgbarLogger"])
    for callback, name in zip(callbacks, names):
        if name != "ProgbarLogger":
            attributes = dict(next(kept)[1])
            put_back_classes(type(callback), attributes.pop(CLASSES, []))
            put_back(callback, attributes)


# -- randomness


class Seeds:
    """Every SeedGenerator that is alive, in the order of its making: a rerun makes the same ones again."""

    def __init__(self) -> None:
        self._made: list[Callable[[], Any]] = []

    def noticed(self, generator: Any) -> None:
        self._made.append(weakref.ref(generator))

    def beyond(self, model: Any) -> list[Any]:
        """State variables of those that no model owns: the global one, and those of layers in the data's way."""
        owned = {id(variable) for variable in model.variables} if model is not None else set()
        alive = (made() for made in self._made)
        states = [getattr(generator, "state", None) for generator in alive if generator is not None]
        return [state for state in states if state is not None and id(state) not in owned]

    def numbers(self, model: Any) -> list[Any]:
        numpy: Any = sys.modules["numpy"]
        return [numpy.array(seed.numpy()) for seed in self.beyond(model)]

    def put_numbers(self, model: Any, numbers: list[Any]) -> None:
        for seed, value in zip(self.beyond(model), numbers):
            seed.assign(value)


class SeedsOfModel:
    """The numbers of all seeds that a model does not own."""

    def __init__(self, seeds: Seeds, model: Any) -> None:
        self._seeds = seeds
        self._model: Callable[[], Any] = weakref.ref(model)

    def numbers(self) -> list[Any]:
        return self._seeds.numbers(self._model())

    def put_numbers(self, numbers: list[Any]) -> None:
        self._seeds.put_numbers(self._model(), numbers)
