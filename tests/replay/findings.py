"""What was found while a run went on, as it was told then and as its record replays: python -m tests.replay.findings RUN…

RUN is a run's directory. Exits with 1 where the two differ.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from holdfast.cli.recording import READ, restarts_in
from holdfast.cli.replay import Replay, turns
from holdfast.journal import Journal
from holdfast.recorded_events import RecordedFinding

LATE_S = 2.5  # an event of the training process may be read a turn after the one that its time is of


@dataclass(frozen=True)
class Told:
    at: float
    found: RecordedFinding

    def is_like(self, other: Told) -> bool:
        """The same finding; told a turn later, its figures may be others."""
        same = [(one.key, one.confidence, one.holder, len(one.evidence)) for one in (self.found, other.found)]
        return same[0] == same[1] and abs(self.at - other.at) < LATE_S


def told_then(run: Path) -> list[Told]:
    return [
        Told(event.at, RecordedFinding.of(event)) for event in Journal(run / "journal").events(RecordedFinding.KIND)
    ]


def told_now(run: Path) -> list[Told]:
    """At every turn of the watcher's."""
    journal = Journal(run / "journal")
    events = journal.events()
    replay = Replay(READ, restarts_in(events))
    for at, readings in turns(journal.samples(READ), events):
        replay.turn(at, readings)
    replay.end_attempt(float("inf"))
    replay.close()
    assert replay.switched_off(0.0) == [], "a detector failed"
    return [Told(at, RecordedFinding.by(finding)) for at, finding in replay.told]


def alike(then: list[Told], now: list[Told]) -> bool:
    return len(then) == len(now) and all(one.is_like(other) for one, other in zip(then, now, strict=True))


def main() -> int:
    differing = 0
    for run in map(Path, sys.argv[1:]):
        then, now = told_then(run), told_now(run)
        differing += not alike(then, now)
        print(f"{run.name}: {'the same' if alike(then, now) else 'DIFFERS'}")
        for what, told in (("then", then), ("now", now)):
            print(*(f"  {what:4} {one.at:.1f} {one.found.key} {one.found.evidence[0]}" for one in told), sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
