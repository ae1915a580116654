"""The verdict for people: one line first, then the evidence, then the fix. 80 columns."""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.masking import masked_command
from holdfast.recorded_events import DetectorOff, Exit, RecordedAction
from holdfast.views.ranks_table import ranks_table
from holdfast.views.resuming import last_checkpoint, resume_command
from holdfast.views.safe_text import safe
from holdfast.views.timeline import notes
from holdfast.vocabulary import Cause, Diagnosis, Window

WIDTH = 80
MOST_GUESSES = 5
BOLD, DIM, RED, GREEN, YELLOW, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
COLOURS = {"completed": GREEN, "recovered": GREEN, "running": GREEN, "stopped": YELLOW}


@dataclass(frozen=True, slots=True)
class Log:
    name: str
    size: str
    last_words: tuple[str, ...] = ()


def as_text(
    run: str,
    window: Window,
    diagnosis: Diagnosis,
    damage: list[str],
    colour: bool,
    *,
    ruled_out: Sequence[str] = (),
    verbose: bool = False,
) -> str:
    about = list(_about(run, window, diagnosis))
    lines = [*_answer(diagnosis, about, last_words(window), colour), *_doubts(diagnosis, ruled_out, colour)]
    if (diagnosis.outcome != "completed" or diagnosis.noticed) and (ranks := ranks_table(window)):
        lines += ["", _bold("Ranks", colour), *ranks]
    if command := resume_command(run, window, diagnosis):
        lines += ["", _bold("To go on", colour), *_resumable(window, command)]
    if missing := not_working(window):
        lines += ["", _bold("Not working here", colour)]
        lines += [line for text in missing for line in _wrapped(safe(text), "  ")]
        lines += _frames(window) if verbose else []
    during = list(_notes(window, diagnosis)) + [line for text in damage for line in _wrapped(safe(text), "  ")]
    if during:
        lines += ["", _bold("During the run", colour), *during]
    return "\n".join(lines)


def _resumable(window: Window, command: str) -> Iterator[str]:
    saved = last_checkpoint(window)
    step = saved.data.get("step") if saved is not None else None
    yield from _wrapped(f"It can be resumed{f' from step {step}' if step is not None else ''}:", "  ")
    yield f"       {safe(command)}"


def log_as_text(log: Log, diagnosis: Diagnosis, colour: bool, verbose: bool) -> str:
    """The same of a log from elsewhere."""
    about = [f"  log      {_shortened(safe(log.name), WIDTH - 11)} ({log.size})", _outcome(diagnosis)]
    return "\n".join(
        [
            *_answer(diagnosis, about, log.last_words, colour),
            *_doubts(diagnosis, considered(diagnosis, verbose), colour),
        ]
    )


def considered(diagnosis: Diagnosis, verbose: bool) -> list[str]:
    """What else it might have been, and why it is not the answer."""
    if not verbose or diagnosis.cause is None:
        return []
    explained = f"{diagnosis.cause.id} explains it or is better supported"
    return [f"{cause.title} ({cause.id}, {cause.confidence:.0%}): {explained}" for cause in diagnosis.also]


def _answer(diagnosis: Diagnosis, about: Sequence[str], said: Sequence[str], colour: bool) -> list[str]:
    paint = BOLD + COLOURS.get(diagnosis.outcome, RED) if colour else ""
    verdict = textwrap.wrap(safe(verdict_line(diagnosis)).replace("\n", " "), WIDTH)
    lines = [f"{paint}{line}{PLAIN}" if colour else line for line in verdict]
    lines += ["", *about]
    if diagnosis.cause is not None:
        lines += ["", *textwrap.wrap(diagnosis.cause.meaning, WIDTH)]
        lines += ["", _bold("Evidence", colour), *_evidence(diagnosis.cause)]
        if diagnosis.cause.remedies:
            lines += ["", _bold("What to do", colour), *_remedies(diagnosis.cause)]
    elif diagnosis.outcome not in ("completed", "recovered", "running") and said:
        lines += ["", _bold("Its last words", colour), *(f"  | {safe(line)[: WIDTH - 4]}" for line in said)]
    if diagnosis.noticed:
        lines += ["", _bold("Noticed", colour), *_noticed(diagnosis.noticed)]
    guesses = diagnosis.also[:MOST_GUESSES] if diagnosis.cause is None else ()
    if guesses:
        lines += ["", _bold("Perhaps", colour)]
        lines += [line for cause in guesses for line in _wrapped(f"{safe(cause.title)} ({cause.confidence:.0%})", "  ")]
    return lines


def _doubts(diagnosis: Diagnosis, ruled_out: Sequence[str], colour: bool) -> list[str]:
    if not ruled_out:
        return []
    certain = f"To be certain of {diagnosis.cause.id}: {diagnosis.cause.sure}" if diagnosis.cause else ""
    lines = ["", _bold("Ruled out", colour), *(line for text in ruled_out for line in _wrapped(safe(text), "  - "))]
    return [*lines, *(["", *_wrapped(certain, "  ")] if certain else [])]


def _bold(text: str, colour: bool) -> str:
    return f"{BOLD}{text}{PLAIN}" if colour else text


def verdict_line(diagnosis: Diagnosis) -> str:
    """The answer in one sentence."""
    if diagnosis.cause is None:
        return diagnosis.summary
    sure = "" if diagnosis.cause.level == "confident" else " (probably)"
    if diagnosis.outcome == "recovered":
        if diagnosis.summary.startswith(diagnosis.cause.title):
            return f"The run finished. {diagnosis.cause.title}{sure}."
        return f"{diagnosis.summary} What it was rescued from: {diagnosis.cause.title}{sure}."
    title = diagnosis.cause.title if sure else diagnosis.cause.title.rstrip(".")
    return f"{title}{sure}" + ("" if title.endswith("…") and not sure else ".")


def _about(run: str, window: Window, diagnosis: Diagnosis) -> Iterator[str]:
    start = next(iter(window.events("run.start")), None)
    end = window.event(Exit.KIND)
    command = shlex.join(masked_command(start.data["command"])).replace("\n", " ") if start else "?"
    yield f"  run      {run}"
    yield f"  command  {_shortened(safe(command), WIDTH - 11)}"
    took = f" after {_span(end.at - start.at)}" if start and end else ""
    code = f", exit code {Exit.of(end).code}" if end else ""
    yield _outcome(diagnosis, took + code)
    if start and start.data.get("resumed_from"):
        yield f"  resumed  from {safe(str(start.data['resumed_from']))}"


def _outcome(diagnosis: Diagnosis, ended: str = "") -> str:
    identity = f" · {diagnosis.cause.id}, {_how_sure(diagnosis.cause)}" if diagnosis.cause else ""
    return f"  outcome  {diagnosis.outcome}{ended}{identity}"


def _how_sure(cause: Cause) -> str:
    return f"{cause.level} ({cause.confidence:.0%})"


def _noticed(causes: Sequence[Cause]) -> Iterator[str]:
    for cause in causes:
        yield from _wrapped(f"{safe(cause.title)} · {cause.id}, {_how_sure(cause)}", "  ")
        further = (item.text for item in cause.evidence if item.text not in cause.title)
        yield from (line for text in further for line in _wrapped(safe(text), "    - "))
        for remedy in cause.remedies[:1]:
            yield from _wrapped(f"{remedy.title}:", "    ")
            yield from (f"       {line}" for line in safe(remedy.how).split("\n"))


def _evidence(cause: Cause) -> Iterator[str]:
    for item in cause.evidence:
        when = time.strftime("%H:%M:%S", time.localtime(item.at)) if item.at is not None else " " * 8
        yield from _wrapped(safe(item.text), f"  {when}  ")


def _remedies(cause: Cause) -> Iterator[str]:
    for number, remedy in enumerate(cause.remedies, 1):
        yield from _wrapped(f"{remedy.title}:", f"  {number}. ")
        yield from (f"       {line}" for line in safe(remedy.how).split("\n"))


def last_words(window: Window) -> list[str]:
    said: list[str] = []
    for stream in window.streams():
        text = window.output(stream)[-4000:].decode("utf-8", "replace")
        said += [line for line in text.splitlines() if line.strip()][-5:]
    return said


def not_working(window: Window) -> list[str]:
    """What of Holdfast did not work in this run, or now that it was read."""
    acted = [RecordedAction.of(event) for event in window.events(RecordedAction.KIND)]
    told = {one.key: one.decision for one in acted if one.is_about_us}
    off = [DetectorOff.of(event) for event in window.events(DetectorOff.KIND)]
    return list(({one.key: one.sentence for one in off} | told).values())


def _frames(window: Window) -> Iterator[str]:
    """Where a detector failed, for whoever mends it."""
    for off in map(DetectorOff.of, window.events(DetectorOff.KIND)):
        yield from (f"    {safe(frame)}" for frame in off.frames)


def _notes(window: Window, diagnosis: Diagnosis) -> Iterator[str]:
    """What happened, but for what stands above as evidence already."""
    causes = (*diagnosis.noticed, *((diagnosis.cause,) if diagnosis.cause else ()))
    told = {item.text for cause in causes for item in cause.evidence}
    for at, text in notes(window.events()):
        if text not in told:
            yield from _wrapped(safe(text), f"  {time.strftime('%H:%M:%S', time.localtime(at))}  ")


def _wrapped(text: str, first: str) -> list[str]:
    rest = " " * len(first)
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [first]


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
