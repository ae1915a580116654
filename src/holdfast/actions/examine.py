"""Asks the training process to count its objects at its next step."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.vocabulary import Decision


def carry_out(decision: Decision, send: Callable[..., bool]) -> str:
    """Returns what became of it, for the record; what was found comes back as an event."""
    sent = send(do="examine", id=decision.key, per_step_bytes=decision.per_step_bytes)
    return "asked" if sent else "could not be asked: nobody trains"
