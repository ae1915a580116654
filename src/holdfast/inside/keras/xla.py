"""A step that Keras compiles with XLA, on a GPU: what it loses when it gets no memory, and how that is avoided.

It gives the buffers of the variables it updates to the computation (`donate_buffer` in TensorFlow's `xla_launch_util.cc`),
and when that gets no memory they are freed while the variables still point to them; TensorFlow aborts at their next use,
or at exit. Only a buffer that somebody else refers to is not given away. So the first step of each new shape is run with a
reference to every variable held, where the card has room for both: then nothing is lost if it fails. Where it has not, or
in a later step, the run must be started again, in as many pieces as make what it asked for fit (`rescue.needs`).
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

from ..never_raise import guarded
from ..out_of_memory import wanted_bytes
from . import seams
from .foresight import Foresight
from .oom_advice import bytes_of

# What XLA may need of what the same step needs without it. It fuses operations, so a card that is nearly full may well hold
# a batch that was measured to be too large: such a one is tried, since nothing is lost by it…
AT_LEAST = 0.6
UNHELD = 0.95  # …or since it will most likely fit, where a failure would mean to start again
# For a first step with a second copy of what it updates: XLA also tries kernels out then, which took up to 256 MiB.
HOLD_RATIO, HOLD_BYTES = 1.25, 256 << 20
MOST_PIECES = 64  # of a next attempt, by an estimate


class XlaStep:
    def __init__(self, model_ref: Callable[[], Any], foresight: Foresight, where: str) -> None:
        self._model_ref, self._foresight, self._where = model_ref, foresight, where
        self._hold = False  # in the next whole step
        self.was_held = False  # in the last one

    def may_fit(self, needed: int) -> bool:
        """Although so much was measured to be too large without XLA."""
        forecast = self._foresight.forecast
        room, used = forecast.room(), forecast.used() or 0
        return room is None or used + (AT_LEAST if self._is_holdable(needed) else UNHELD) * needed <= room.bytes

    def hold_next(self, batch: Any, rows: int, tail: Any) -> None:
        self._hold = self._is_holdable(self._foresight.likely(batch, rows, tail))

    def _is_holdable(self, needed: float) -> bool:
        """A step writes to new memory where a second reference to a variable is held."""
        forecast = self._foresight.forecast
        room, used = forecast.room(), forecast.used() or 0
        return room is None or used + bytes_of(self._state()) + HOLD_RATIO * needed + HOLD_BYTES <= room.bytes

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        self.was_held, self._hold = self._hold, False
        references = [seams.value_of(variable).read_value() for variable in self._state()] if self.was_held else []
        try:
            yield
        finally:
            references.clear()

    def _state(self) -> list[Any]:
        model = self._model_ref()
        state = [*model.variables, *getattr(model.optimizer, "variables", ())] if model is not None else []
        return [variable for variable in state if hasattr(seams.value_of(variable), "read_value")]

    @guarded
    def tell_needs(self, error: BaseException, recorder: Any) -> None:
        """Of the next attempt."""
        forecast = self._foresight.forecast
        room, used, needed = forecast.room(), forecast.used() or 0, wanted_bytes(error)
        k = 2
        if room is not None and needed:
            sums = bytes_of(getattr(self._model_ref(), "trainable_variables", ()))
            k = max(k, -(-needed // int(max(room.piece - used - sums, needed / MOST_PIECES))))
        recorder.event(
            "rescue.needs", k=k, where=self._where, of="gpu", needed_bytes=needed or 0,
            limit_bytes=room.bytes if room is not None else 0,
        )  # fmt: skip


def compiled_by_xla(model: Any) -> bool:
    return bool(getattr(model, "jit_compile", False)) and not bool(getattr(model, "run_eagerly", False))
