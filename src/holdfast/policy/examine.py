"""When the training process is asked to count its objects, to find what grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.vocabulary import Decision, DecisionKind, Finding, Policy

MOST = 6  # examinations a run: each counts twice, and a count took 0.05 to 0.17 s on a busy machine
FIRST_WAIT_S = 8.0  # after the first; doubled with each further one
KEY = "examine:"  # how the key of such a decision begins
ANSWER_PACE_S, ANSWER_S = 0.25, 10.0  # how often, and how long, the answer is looked for after asking


def decide(findings: Sequence[Finding], policy: Policy, decided_at: Mapping[str, float], now: float) -> list[Decision]:
    asked = [at for key, at in decided_at.items() if key.startswith(KEY)]
    suspects = [finding for finding in findings if finding.growth is not None and finding.growth.unexplained]
    if policy == Policy.OBSERVE or not suspects or len(asked) >= MOST:
        return []
    if asked and now - max(asked) < FIRST_WAIT_S * 2 ** (len(asked) - 1):
        return []
    text = f"looked for what grows: {suspects[0].evidence[0].text}"
    growth = suspects[0].growth
    per_step_bytes = growth.per_step_bytes if growth is not None else 0.0
    key = f"{KEY}{len(asked) + 1}"
    return [Decision(DecisionKind.EXAMINE, key, text, suspects[0].cause, per_step_bytes=per_step_bytes)]


def pace_s(decided_at: Mapping[str, float], now: float) -> float:
    """Seconds until the next turn while an answer is awaited."""
    asked_at = max((at for key, at in decided_at.items() if key.startswith(KEY)), default=float("-inf"))
    return ANSWER_PACE_S if now - asked_at < ANSWER_S else float("inf")
