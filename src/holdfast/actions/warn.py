"""Prints a warning as one line on the user's standard error."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.vocabulary import Decision, DecisionKind


def carry_out(decision: Decision, say: Callable[[str], bool]) -> str:
    """Returns what became of it, for the record."""
    if decision.kind == DecisionKind.NOTE:
        return "recorded"
    return "said" if say(f"holdfast: {decision.text}") else "could not be said: nobody listens"
