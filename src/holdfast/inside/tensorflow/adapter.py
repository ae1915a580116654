"""TensorFlow: where a loop of the user's own is noticed. `fit` is Keras's affair and is not counted here."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..never_raise import guarded
from ..seams import RESCUE, TELEMETRY, Abilities
from ..settings import rescue_wanted
from ..telemetry import Recorder
from . import seams
from .budget import limit_allocators
from .loop import loop_of
from .nesting import hide_frames
from .pipeline_buffers import take_over_creation
from .step import take_over_calls, take_over_pulls, take_over_tapes


def install(recorder: Recorder) -> None:
    tf: Any = sys.modules["tensorflow"]
    can = Abilities("TensorFlow", str(getattr(tf, "__version__", "?")), seams.SEEN, seams.OF_LOOPS)
    can.tell(recorder, "tensorflow", [TELEMETRY, *([RESCUE] if rescue_wanted(recorder.settings) else [])])
    guarded(hide_frames)(seams.TRACEBACKS)
    if can.can(RESCUE):
        guarded(limit_allocators)(recorder)
    if can.can(TELEMETRY):
        guarded(take_over_creation)(recorder)
        loop = loop_of(recorder, tf)
        for take_over in (take_over_calls, take_over_pulls, take_over_tapes):
            guarded(functools.partial(take_over, loop, tf))()
    recorder.event("adapter.ready", name="tensorflow")
