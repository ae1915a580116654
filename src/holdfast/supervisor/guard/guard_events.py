"""What the guard did, in the record and in words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from holdfast.recorded_events import GuardAct, RecordedAction
from holdfast.units import amount, duration
from holdfast.vocabulary import Event

if TYPE_CHECKING:
    from holdfast.supervisor.tick import Watch


def take(watch: Watch, event: Event) -> None:
    """Records one packet from the guard, tells the user what matters, passes on what it requests."""
    watch.record(event)
    if event.kind not in (GuardAct.ASKED, GuardAct.HELD, GuardAct.STOPPED):
        return
    act = GuardAct.of(event)
    subject = f"{act.cause}:{act.what}"
    if event.kind == GuardAct.ASKED:
        do, id = str(event.data["do"]), str(event.data["id"])
        result = "asked" if watch.ask(do=do, id=id) else "could not be asked: nobody trains"
        acted = RecordedAction(id, f"asked for {_words(do)}: {_state(act)}", result)
    elif event.kind == GuardAct.HELD:
        acted = RecordedAction(f"guard:hold:{subject}", f"held the job: {_state(act)}", "held")
    else:
        acted = RecordedAction(f"guard:stop:{subject}", stopped_text(act), f"ended {act.victim}")
        watch.say(f"holdfast: {acted.decision}")
    watch.record(acted.event(time.time()))


def stopped_text(act: GuardAct) -> str:
    whom = "the job" if act.whole_job else f"a helper process, {act.victim},"
    saved = act.checkpoint_saved_s_ago
    checkpoint = f"; the last checkpoint is {duration(saved)} old" if saved is not None else ""
    return f"stopped {whom} before memory ran out: {_state(act)}{checkpoint}"


def _state(act: GuardAct) -> str:
    if act.stalled_s > 0.5:
        return f"{act.what}: everything waited for it for {duration(act.stalled_s)}"
    growing = f", growing {amount(act.per_s, 'bytes')}/s" if act.per_s > 0 else ""
    return f"{act.what}: {amount(act.taken_bytes, 'bytes')} of {amount(act.whole_bytes, 'bytes')} in use{growing}"


def _words(do: str) -> str:
    return "memory back" if do == "relieve" else "a checkpoint"
