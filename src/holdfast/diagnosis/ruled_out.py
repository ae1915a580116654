"""What a recorded run shows not to have been the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.causes import CAUSES
from holdfast.causes.form import Below, NotSeen, Room, Unmoved
from holdfast.vocabulary import Diagnosis, Window
from holdfast.windows import Reads, reads

ROOM = 0.1  # of the whole was always left


def _read_for(absence: Room | Unmoved | Below | NotSeen) -> Reads:
    match absence:
        case Room(left, whole, _):
            return Reads(latest=(whole,), course=(left,))
        case Unmoved(counters, _):
            return Reads(course=counters)
        case Below(used, limit, _):
            return Reads(latest=(limit,), course=(used,))
        case NotSeen(event, _):
            return Reads(events=("run.start", event))


@reads(*(_read_for(absence) for record in CAUSES.values() for absence in record.ruled_out))
def ruled_out(window: Window, diagnosis: Diagnosis) -> list[str]:
    named = {cause.id for cause in (diagnosis.cause, *diagnosis.also) if cause and cause.confidence > 0.3}
    return [text for cause, text in _reasons(window) if cause not in named]


def _reasons(window: Window) -> Iterator[tuple[str, str]]:
    for record in CAUSES.values():
        for absence in record.ruled_out:
            for text in _shown(window, absence):
                yield record.id, text


def _shown(window: Window, absence: Room | Unmoved | Below | NotSeen) -> Iterator[str]:
    match absence:
        case Room(left, whole, what):
            yield from _room(window, left, whole, what)
        case Unmoved(counters, text):
            read = [name for name in counters if window.last(name) is not None]
            if read and not any(window.rise(name) > 0 for name in read):
                yield text
        case Below(used, limit, what):
            most, allowed = _extreme(window, used, max), window.value(limit)
            if most is not None and allowed and most < (1 - ROOM) * allowed:
                yield f"{what}: at most {most:.0f} of {allowed:.0f}."
        case NotSeen(event, text):
            if not window.events(event) and window.event("run.start") is not None:
                yield text


def _room(window: Window, left: str, whole: str, what: str) -> Iterator[str]:
    before, star, after = left.partition("*")
    for name in window.names(before, after) if star else [left]:
        which = name[len(before) : len(name) - len(after)] if star else ""
        lowest, total = _extreme(window, name, min), window.value(whole.replace("*", which))
        if lowest is not None and total and lowest > ROOM * total:
            told = what.replace("*", which)
            yield f"{told}: at least {lowest / (1 << 30):.3g} of {total / (1 << 30):.3g} GiB were left."


def _extreme(window: Window, name: str, choose: Callable[[list[float]], float]) -> float | None:
    values = [sample.value for sample in window.series(name) if sample.value is not None]
    return choose(values) if values else None
