"""TensorFlow: where a loop of the user's own is noticed. `fit` is Keras's affair and is not counted here."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .. import checkpoint_store, randomness
from ..never_raise import guarded
from ..seams import CHECKPOINT, RESCUE, RESUME, TELEMETRY, Abilities
from ..settings import rescue_wanted
from ..telemetry import Recorder
from . import seams
from .budget import limit_allocators
from .kept_loops import KeptLoops
from .loop import loop_of
from .nesting import hide_frames
from .pipeline_buffers import take_over_creation
from .random_state import shuffle_alike
from .step import take_over_calls, take_over_pulls, take_over_tapes


def install(recorder: Recorder) -> None:
    tf: Any = sys.modules["tensorflow"]
    wanted = recorder.settings.get("checkpoint")
    known = (*seams.OF_LOOPS, *seams.TO_KEEP_LOOPS)
    can = Abilities("TensorFlow", str(getattr(tf, "__version__", "?")), seams.SEEN, known)
    asked = {TELEMETRY: True, CHECKPOINT: wanted, RESUME: wanted, RESCUE: rescue_wanted(recorder.settings)}
    can.tell(recorder, "tensorflow", [ability for ability, is_asked in asked.items() if is_asked])
    if wanted:
        checkpoint_store.refuse_to_resume(recorder, wanted, "tensorflow", can.why_not(RESUME))
        seed = guarded(randomness.begin_alike)(str(wanted["directory"]), bool(wanted.get("resume")))
        if seed and can.can(CHECKPOINT):
            guarded(shuffle_alike)(seed)
    guarded(hide_frames)(seams.TRACEBACKS)
    if can.can(RESCUE):
        guarded(limit_allocators)(recorder)
    if can.can(TELEMETRY):
        guarded(take_over_creation)(recorder)
        loop = loop_of(recorder, tf)
        if wanted and recorder.settings.get("policy") == "protect" and can.can(CHECKPOINT) and can.can(RESUME):
            guarded(loop.keep)(guarded(KeptLoops)(recorder, tf, wanted, loop))
        for take_over in (take_over_calls, take_over_pulls, take_over_tapes):
            guarded(functools.partial(take_over, loop, tf))()
    recorder.event("adapter.ready", name="tensorflow")
