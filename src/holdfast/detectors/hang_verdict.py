"""What is said of a job that stands still."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    cause: str
    confidence: float
    headline: str
    evidence: tuple[str, ...]
    soon: bool = False  # it cannot end by itself, so a short silence is enough
    proven: bool = False
    of_files: bool = False  # told before a job has trained, too
    among_ranks: bool = False  # others stand in a collective: nobody waits there for long
