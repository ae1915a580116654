"""State of a fit on TensorFlow: variables, random numbers, iterators."""

from __future__ import annotations

import sys
from typing import Any

from .. import randomness
from ..tensorflow import seams as tf_seams
from . import seams
from .saved_state import AT_ONCE_BYTES, nbytes_of


class TensorFlowState:
    pulls_in_walk = False  # the batch that is due is pulled by what stands in for Keras's train function

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    # -- random numbers

    def random_state(self) -> dict[str, Any]:
        state = randomness.capture()
        drawing, generator = tf_seams.python_random(), tf_seams.global_generator()
        state["tensorflow"] = None if drawing is None else drawing.getstate()
        state["generator"] = None if generator is None else generator.state.numpy()
        return state

    def put_random_state(self, state: dict[str, Any]) -> None:
        randomness.restore(state)
        drawing, generator = tf_seams.python_random(), tf_seams.global_generator()
        if state.get("tensorflow") is not None and drawing is not None:
            drawing.setstate(state["tensorflow"])
        if state.get("generator") is not None and generator is not None:
            generator.state.assign(state["generator"])

    # -- variables

    def read(self, variable: Any) -> Any:
        """On the CPU a read costs no copy: TensorFlow copies a buffer that is still held when it writes to the variable next.

        On a GPU a held read would keep the variable's memory twice on the card, through the next step, and a card is mostly
        full. So there each variable is copied to the host at once, one after the other, before that step can overwrite it or
        hand its buffer on. That is the pause, and `Pace` spaces saves by it. The host's part of it, measured on two busy cores
        for 640 MiB: 0.25 s into memory that was in use before, 2.6 to 2.9 s into fresh pages (sharing on the CPU: 1 ms).
        """
        held = seams.value_of(variable)
        tensor = held.read_value()
        return tensor if "CPU" in held.device else tensor.numpy()

    def put(self, variable: Any, archive: Any, name: str, described: list[Any]) -> None:
        held, dtype = seams.value_of(variable), described[2]
        wanted = self.tf.as_dtype(dtype).as_numpy_dtype
        if dtype != "string" and "CPU" in held.device and nbytes_of(*described[1:]) > AT_ONCE_BYTES:
            with archive.zip.open(f"{name}.npy") as file:
                self._put_in_parts(held, file, wanted)
            return
        array = archive[name]
        held.assign(array if array.dtype == wanted else array.view(wanted))

    def _put_in_parts(self, held: Any, file: Any, wanted: Any) -> None:
        """Into the memory that the variable has: at once there would be three copies of it, and where its slices are
        assigned to by `held[…]`, which reads it, two."""
        numpy: Any = sys.modules["numpy"]
        numpy.lib.format.read_magic(file)
        (length, *row), _, dtype = numpy.lib.format.read_array_header_1_0(file)
        row_bytes = dtype.itemsize * int(numpy.prod(row))
        rows = max(1, AT_ONCE_BYTES // row_bytes)
        for begin in range(0, length, rows):
            end = min(begin + rows, length)
            part = numpy.frombuffer(file.read((end - begin) * row_bytes), dtype).reshape(end - begin, *row)
            self.tf.raw_ops.ResourceStridedSliceAssign(
                ref=held.handle, begin=[begin], end=[end], strides=[1], value=part.view(wanted)
            )

    # -- data

    def needs_iterator_state(self, adapter: Any) -> bool:
        """Arrays shuffled without a seed cannot be repeated."""
        shuffled = type(adapter).__name__ == "ArrayDataAdapter" and seams.is_shuffled(adapter)
        return shuffled and tf_seams.global_seed() is None

    def iterator_state(self, iterator: Any) -> Any:
        return tf_seams.state_of(iterator)

    def put_iterator_state(self, iterator: Any, state: Any) -> None:
        tf_seams.put_state(iterator, self.tf.constant(state))

    def pull(self, iterator: Any) -> None:
        iterator.get_next()

    def loader_state(self, _epoch_iterator: Any) -> Any:
        return None

    def put_loader_state(self, _epoch_iterator: Any, _state: Any) -> None:
        pass

    def epoch_iterator(self, model: Any, **given: Any) -> Any:
        made = seams.tf_epoch_iterator_class()
        return made(
            distribute_strategy=model.distribute_strategy, steps_per_execution=model.steps_per_execution, **given
        )

    def build(self, model: Any, epoch_iterator: Any) -> None:
        trace = getattr(model.train_function, "prepare_for", None)
        if trace is not None:
            trace(seams.dataset_of(epoch_iterator))
