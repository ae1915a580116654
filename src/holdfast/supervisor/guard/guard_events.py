"""What the guard did, in the record and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.detectors.units import amount, duration
from holdfast.vocabulary import Event

if TYPE_CHECKING:
    from holdfast.supervisor.tick import Watch


def take(watch: Watch, event: Event) -> None:
    """Records one packet from the guard, tells the user what matters, passes on what it requests."""
    watch.record(event)
    data = event.data
    key = f"{data.get('cause')}:{data.get('what')}"
    if event.kind == "guard.ask":
        sent = watch.ask(do=str(data["do"]), id=str(data["id"]))
        watch.event("action", key=data["id"], decision=f"asked for {_words(str(data['do']))}: {_state(event)}", result="asked" if sent else "could not be asked: nobody trains")  # fmt: skip
    elif event.kind == "guard.held":
        watch.event("action", key=f"guard:hold:{key}", decision=f"held the job: {_state(event)}", result="held")
    elif event.kind == "guard.stopped":
        text = stopped_text(event)
        watch.event("action", key=f"guard:stop:{key}", decision=text, result=f"ended {data.get('victim')}")
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
