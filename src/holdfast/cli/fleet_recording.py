"""The records of all ranks of a job beside one run's, where that run is a rank of it and the others lie beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.fleet.first_stop import first_of
from holdfast.fleet.membership import Member, mates
from holdfast.fleet.merge import COMPARED_S, EVENTS, OF_RANKS, SIGNALS, SILENT_S, events_of, samples_of
from holdfast.fleet.stories import stories
from holdfast.journal import Journal
from holdfast.recorded_events import Exit
from holdfast.vocabulary import Event, Sample, Window


@dataclass(frozen=True, slots=True)
class Together:
    """`run`: whose record explains the job, the one that was asked for where none does."""

    run: Path
    events: tuple[Event, ...]  # of all ranks, about ranks
    members: tuple[Member, ...]

    def own(self, events: list[Event]) -> list[Event]:
        """The events of that run with those of all ranks in place of what it says of its own."""
        kept = [event for event in events if event.kind not in OF_RANKS]
        return sorted([*kept, *self.events], key=lambda event: event.at)

    def samples(self) -> list[Iterator[Sample]]:
        """The pace of each rank, towards the end."""
        since = max((event.at for event in self.events), default=0.0) - COMPARED_S
        return [
            samples_of(one, Journal(one.run / "journal").samples(SIGNALS, since + one.correction_s))
            for one in self.members
        ]


def together(run: Path) -> Together | None:
    """None for a run that is alone."""
    members = mates(run, run.parent.iterdir())
    if not members:
        return None
    told = {member: Journal(member.run / "journal").events(*EVENTS) for member in members}
    over = [event.at - m.correction_s for m, events in told.items() for event in events if event.kind == Exit.KIND]
    found: list[Event] = []
    for member, events in told.items():
        found += events_of(member, events, None if not over else _lost_at(member, events, max(over)))
    first = first_of(stories(Window(found)))
    chosen = {member.joined.rank: member.run for member in members}.get(first.told_by if first is not None else -1, run)
    return Together(chosen, tuple(sorted(found, key=lambda event: event.at)), tuple(members))


def _lost_at(member: Member, events: list[Event], over_at: float) -> float | None:
    """Where its record ends without an ending, well before the job did: that machine, or its way to the storage, was lost."""
    if any(event.kind == Exit.KIND for event in events):
        return None
    last = max(
        (sample.at for sample in Journal(member.run / "journal").samples({"host.memory_available_bytes"})), default=0.0
    )
    last = max([last, *(event.at for event in events)])
    return last if last - member.correction_s < over_at - SILENT_S else None
