"""What a model in training consists of, read in an instant and put back bit for bit: variables, callbacks, randomness."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import weakref
import zipfile
from typing import Any, Callable, Iterable

from .. import randomness
from ..tensorflow import seams as tf_seams
from . import seams
from .plain_copies import attributes_of, put_back

ARRAYS = "variables.npz"
AT_ONCE_BYTES = 16 << 20  # read, or written and not yet on the disk


class Mismatch(Exception):
    """The script is not the one that was saved."""


def variables_of(model: Any) -> list[Any]:
    """Weights, seeds, optimizer with its slots and loss scale, metrics; in an order that a rerun repeats."""
    found: list[Any] = [*model.variables]
    if getattr(model, "optimizer", None) is not None:
        found += model.optimizer.variables
    found += model.metrics_variables
    seen: set[int] = set()
    return [v for v in found if not (id(v) in seen or seen.add(id(v)))]  # type: ignore[func-returns-value]


class Taken:
    """Variables as they were at one moment. Taken on the training thread, before the batch that is due.

    On the CPU a read costs no copy: TensorFlow copies a buffer that is still held when it writes to the variable next.
    On a GPU a held read would keep the variable's memory twice on the card, through the next step, and a card is mostly
    full. So there each variable is copied to the host at once, one after the other, before that step can overwrite it or
    hand its buffer on. That is the pause, and `Pace` spaces saves by it. The host's part of it, measured on two busy cores
    for 640 MiB: 0.25 s into memory that was in use before, 2.6 to 2.9 s into fresh pages (sharing on the CPU: 1 ms).
    """

    def __init__(self, variables: list[Any]) -> None:
        self.index = [describe(variable) for variable in variables]
        self._values = [_read(variable) for variable in variables]

    def nbytes(self) -> int:
        return sum(_nbytes(shape, dtype) for _, shape, dtype in self.index)

    def write(self, path: str) -> None:
        numpy: Any = sys.modules["numpy"]
        with Drained(path, "wb") as drained, zipfile.ZipFile(drained, "w", zipfile.ZIP_STORED) as archive:
            for number, value in enumerate(self._values):
                array = _as_stored(value)
                with archive.open(f"{number}.npy", "w", force_zip64=True) as file:
                    numpy.lib.format.write_array(file, array, allow_pickle=array.dtype.hasobject)


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


def _nbytes(shape: list[int], dtype: str) -> int:
    size = 8 if "64" in dtype else 2 if "16" in dtype else 1 if "8" in dtype else 4
    for length in shape:
        size *= length
    return size


def _read(variable: Any) -> Any:
    held = seams.value_of(variable)
    tensor = held.read_value()
    return tensor if "CPU" in held.device else tensor.numpy()


def put_variables(variables: list[Any], index: list[Any], path: str, tf: Any) -> None:
    check_alike([describe(variable) for variable in variables], index)
    numpy: Any = sys.modules["numpy"]
    with numpy.load(path, allow_pickle=True) as archive:  # strings; what lies beside it is a pickle, too
        for number, variable in enumerate(variables):
            wanted = tf.as_dtype(index[number][2]).as_numpy_dtype
            in_parts = index[number][2] != "string" and "CPU" in seams.value_of(variable).device
            if in_parts and _nbytes(*index[number][1:]) > AT_ONCE_BYTES:
                with archive.zip.open(f"{number}.npy") as file:
                    _put_in_parts(seams.value_of(variable), file, wanted, tf)
                continue
            array = archive[str(number)]
            seams.value_of(variable).assign(array if array.dtype == wanted else array.view(wanted))


def _put_in_parts(held: Any, file: Any, wanted: Any, tf: Any) -> None:
    """Into the memory that the variable has: at once there would be three copies of it, and where its slices are assigned to
    by `held[…]`, which reads it, two."""
    numpy: Any = sys.modules["numpy"]
    numpy.lib.format.read_magic(file)
    (length, *row), _, dtype = numpy.lib.format.read_array_header_1_0(file)
    row_bytes = dtype.itemsize * int(numpy.prod(row))
    rows = max(1, AT_ONCE_BYTES // row_bytes)
    for begin in range(0, length, rows):
        end = min(begin + rows, length)
        part = numpy.frombuffer(file.read((end - begin) * row_bytes), dtype).reshape(end - begin, *row)
        tf.raw_ops.ResourceStridedSliceAssign(
            ref=held.handle, begin=[begin], end=[end], strides=[1], value=part.view(wanted)
        )


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


def callbacks_state(callbacks: Iterable[Any]) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for callback in callbacks:
        kind = type(callback)
        of_keras = kind.__module__.startswith("keras.")
        found.append((kind.__name__, attributes_of(callback, seams.OF_A_CALLBACK, share_arrays=of_keras)))
    return found


def put_callbacks(callbacks: list[Any], saved: list[tuple[str, dict[str, Any]]]) -> None:
    names = [type(callback).__name__ for callback in callbacks]
    # A progress bar is there or not as the attempt was started; it has nothing to go on from.
    if [n for n in names if n != "ProgbarLogger"] != [n for n, _ in saved if n != "ProgbarLogger"]:
        raise Mismatch(f"the callbacks are {', '.join(names)}; saved were {', '.join(n for n, _ in saved)}")
    kept = iter([entry for entry in saved if entry[0] != "ProgbarLogger"])
    for callback, name in zip(callbacks, names):
        if name != "ProgbarLogger":
            put_back(callback, next(kept)[1])


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


def random_state(tf: Any) -> dict[str, Any]:
    state = randomness.capture()
    drawing, generator = tf_seams.python_random(), tf_seams.global_generator()
    state["tensorflow"] = None if drawing is None else drawing.getstate()
    state["generator"] = None if generator is None else generator.state.numpy()
    return state


def put_random_state(state: dict[str, Any]) -> None:
    randomness.restore(state)
    drawing, generator = tf_seams.python_random(), tf_seams.global_generator()
    if state.get("tensorflow") is not None and drawing is not None:
        drawing.setstate(state["tensorflow"])
    if state.get("generator") is not None and generator is not None:
        generator.state.assign(state["generator"])
