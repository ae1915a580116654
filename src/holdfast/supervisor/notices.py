"""Events that are told to the user as they are: no judgement, no decision, only a line."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.supervisor import machine_check
from holdfast.vocabulary import Event, Policy


def lines(events: Iterable[Event], policy: Policy) -> list[str]:
    """`observe` says nothing."""
    if policy == Policy.OBSERVE:
        return []
    return [f"holdfast: {_words(event)}" for event in events if _is_told(event)]


def _words(event: Event) -> str:
    if event.kind == machine_check.KIND:
        return f"{event.data['text']} (fix: {event.data['fix']})"
    return str(event.data["reason"])


def _is_told(event: Event) -> bool:
    if event.kind in ("inside.absent", machine_check.KIND):
        return True
    return event.kind == "probe.missing" and bool(event.data.get("tell"))
