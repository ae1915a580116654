"""What the guard did, in the record and in words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from holdfast.detectors.units import amount, duration
from holdfast.vocabulary import Acted, Event

if TYPE_CHECKING:
    from holdfast.supervisor.tick import Watch


def take(watch: Watch, event: Event) -> None:
    """Journals one packet of the guard's, says what the user should know, carries out what it asks for."""
    watch.record(event)
    data = event.data
    key = f"{data.get('cause')}:{data.get('what')}"
    if event.kind == "guard.ask":
        sent = watch.ask(do=str(data["do"]), id=str(data["id"]))
        text = f"asked for {_words(str(data['do']))}: {_state(event)}"
        result = "asked" if sent else "could not be asked: nobody trains"
        watch.record(Acted(str(data["id"]), text, result).event(time.time()))
    elif event.kind == "guard.held":
        watch.record(Acted(f"guard:hold:{key}", f"held the job: {_state(event)}", "held").event(time.time()))
    elif event.kind == "guard.stopped":
        text = stopped_text(event)
        watch.record(Acted(f"guard:stop:{key}", text, f"ended {data.get('victim')}").event(time.time()))
        watch.say(f"holdfast: {text}")


def stopped_text(event: Event) -> str:
    data = event.data
    whom = "the job" if data.get("whole_job") else f"a helper process, {data.get('victim')},"
    saved = data.get("checkpoint_saved_s_ago")
    checkpoint = f"; the last checkpoint is {duration(float(saved))} old" if saved is not None else ""
    return f"stopped {whom} before memory ran out: {_state(event)}{checkpoint}"


def _state(event: Event) -> str:
    data = event.data
    if float(data.get("stalled_s") or 0) > 0.5:
        return f"{data['what']}: everything waited for it for {duration(float(data['stalled_s']))}"
    per_s = float(data["per_s"])
    growing = f", growing {amount(per_s, 'bytes')}/s" if per_s > 0 else ""
    taken, whole = float(data["taken_bytes"]), float(data["whole_bytes"])
    return f"{data['what']}: {amount(taken, 'bytes')} of {amount(whole, 'bytes')} in use{growing}"


def _words(do: str) -> str:
    return "memory back" if do == "relieve" else "a checkpoint"
