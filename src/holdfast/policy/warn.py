"""Which findings the user is told of, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.vocabulary import Decision, DecisionKind, Finding, Policy

AGAIN_S = 600.0  # before the same warning is repeated
SUSPICION = 0.5  # below this confidence a finding is examined, not told


def decide(findings: Sequence[Finding], policy: Policy, decided_at: Mapping[str, float], now: float) -> list[Decision]:
    """One warning a subject, again after ten minutes if it still holds. `observe` records and says nothing."""
    decisions = []
    for finding in findings:
        if finding.confidence < SUSPICION:
            continue
        ago_s = now - decided_at.get(finding.key, float("-inf"))
        if 0 <= ago_s < AGAIN_S:  # a clock set back does not silence it for hours
            continue
        kind = DecisionKind.NOTE if policy == Policy.OBSERVE else DecisionKind.WARN
        decisions.append(Decision(kind, finding.key, finding.evidence[0].text, finding.cause))
    return decisions
