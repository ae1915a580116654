"""Whether an exception is what a rule speaks of."""

from __future__ import annotations

import re

from holdfast.causes.form import Rule
from holdfast.diagnosis.tracebacks import Raised


def fits(rule: Rule, raised: Raised) -> dict[str, str] | None:
    """The named groups of the rule's words; None where it says nothing of this exception."""
    if rule.types and raised.bare_type not in rule.types:
        return None
    if rule.frames and not _passes_through(rule.frames, raised):
        return None
    if rule.deepest and not (raised.frames and re.search(rule.deepest, raised.frames[-1].file)):
        return None
    if rule.outside and any(re.search(rule.outside, f"{f.file} {f.code}") for f in raised.frames):
        return None
    return rule.match(f"{raised.type}: {raised.message}")


def _passes_through(pattern: str, raised: Raised) -> bool:
    if raised.message.startswith("in user code") and re.search(pattern, raised.message):
        return True  # AutoGraph puts the frames into the message
    return any(re.search(pattern, f"{f.file} {f.function} {f.code}") for f in raised.frames)
