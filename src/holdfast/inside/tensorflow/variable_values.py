"""The values of TensorFlow's variables: read in an instant, and put back bit for bit."""

from __future__ import annotations

import sys
from typing import Any, List

AT_ONCE_BYTES = 16 << 20  # read, or written and not yet on the disk


def read(variable: Any) -> Any:
    """On the CPU a read costs no copy: TensorFlow copies a buffer that is still held when it writes to the variable next.

    On a GPU a held read would keep the variable's memory twice on the card, through the next step, and a card is mostly
    full. So there each variable is copied to the host at once, one after the other, before that step can overwrite it or
    hand its buffer on. That is the pause, and `Pace` spaces saves by it. The host's part of it, measured on two busy cores
    for 640 MiB: 0.25 s into memory that was in use before, 2.6 to 2.9 s into fresh pages (sharing on the CPU: 1 ms).
    """
    tensor = variable.read_value()
    return tensor if "CPU" in variable.device else tensor.numpy()


def put(tf: Any, variable: Any, archive: Any, name: str, shape: List[int], dtype: str) -> None:
    """From an archive of arrays, where it has this name."""
    wanted = tf.as_dtype(dtype).as_numpy_dtype
    if dtype != "string" and "CPU" in variable.device and nbytes_of(shape, dtype) > AT_ONCE_BYTES:
        with archive.zip.open(f"{name}.npy") as file:
            _put_in_parts(tf, variable, file, wanted)
        return
    variable.assign(as_it_was(tf, archive[name], dtype))


def as_it_was(tf: Any, array: Any, dtype: str) -> Any:
    """NumPy's format has no name for bfloat16 and the like: those are stored as numbers of their size."""
    wanted = tf.as_dtype(dtype).as_numpy_dtype
    return array if dtype == "string" or array.dtype == wanted else array.view(wanted)


def _put_in_parts(tf: Any, variable: Any, file: Any, wanted: Any) -> None:
    """Into the memory that the variable has: at once there would be three copies of it, and where its slices are
    assigned to by `variable[…]`, which reads it, two."""
    numpy: Any = sys.modules["numpy"]
    numpy.lib.format.read_magic(file)
    (length, *row), _, dtype = numpy.lib.format.read_array_header_1_0(file)
    row_bytes = dtype.itemsize * int(numpy.prod(row))
    rows = max(1, AT_ONCE_BYTES // row_bytes)
    for begin in range(0, length, rows):
        end = min(begin + rows, length)
        part = numpy.frombuffer(file.read((end - begin) * row_bytes), dtype).reshape(end - begin, *row)
        tf.raw_ops.ResourceStridedSliceAssign(
            ref=variable.handle, begin=[begin], end=[end], strides=[1], value=part.view(wanted)
        )


def nbytes_of(shape: List[int], dtype: str) -> int:
    size = 8 if "64" in dtype else 2 if "16" in dtype else 1 if "8" in dtype else 4
    for length in shape:
        size *= length
    return size
