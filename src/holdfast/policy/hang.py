"""Whether a job in which nothing moves is ended. Pure.

Only what is proven to stand for ever (a lock that nobody is left to release, a peer that is gone), or what has lasted `hang_timeout_s`; and only a job that had trained: an idle server or a script that waits for its turn is told about and left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.vocabulary import Decision, DecisionKind, Finding, Policy

TIMEOUT_S = 300.0
SUBJECT = ":hang"  # how the key of such a finding ends
KEY = "hang:"  # how the key of such a decision begins


def told_in(decided_at: Mapping[str, float]) -> set[str]:
    """The keys under which it was told that the job stands still."""
    return {key for key in decided_at if key.endswith(SUBJECT)}


def decide(
    findings: Sequence[Finding], policy: Policy, decided_at: Mapping[str, float], timeout_s: float = TIMEOUT_S
) -> list[Decision]:
    """END, once an attempt."""
    if policy != Policy.PROTECT or any(key.startswith(KEY) for key in decided_at):
        return []
    for finding in findings:
        stands = finding.standstill
        if stands is None or not stands.trained:
            continue
        lasted = stands.silent_s >= timeout_s
        if not lasted and not stands.proven:
            continue
        reason = f"it has stood still for {stands.silent_s:.0f} s" if lasted else "it cannot go on by itself"
        return [
            Decision(
                DecisionKind.END, f"{KEY}{finding.cause}", f"ended the job: {reason}; {finding.headline}", finding.cause
            )
        ]
    return []
