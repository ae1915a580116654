"""Events that are told to the user as they are: no judgement, no decision, only a line."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.vocabulary import Event, Policy


def lines(events: Iterable[Event], policy: Policy) -> list[str]:
    """`observe` says nothing."""
    if policy == Policy.OBSERVE:
        return []
    return [f"holdfast: {event.data['reason']}" for event in events if _is_told(event)]


def _is_told(event: Event) -> bool:
    return event.kind == "inside.absent" or (event.kind == "probe.missing" and bool(event.data.get("tell")))
