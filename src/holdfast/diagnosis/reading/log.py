"""A log from elsewhere: what each of its parts says, weighed by who said it first and whether the run went on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.causes import CAUSES
from holdfast.diagnosis.plain_text import Line, is_progress, read_lines, voices
from holdfast.diagnosis.reading.clues import from_chain, from_fatal, from_line, from_message, from_native
from holdfast.diagnosis.reading.scan import Excerpt
from holdfast.diagnosis.reading.truncated_traceback import of_the_last_frame
from holdfast.diagnosis.tracebacks import Raised, chains, last_fatal, native_errors
from holdfast.vocabulary import Finding

MOST_NATIVE = 50
TELLING = 0.86
WENT_ON_LINES = 60  # of ordinary output after an error: it was handled
HANDLED = 0.4
MANY_REPORTS = 10  # after any other line: the run did not end there, whatever it said
REPORTS = 3  # of steps or epochs after a complaint of the installation: it did not keep the run from training
SHORT_LINES = 80  # so short a text is what a person cut out of a log: an error's message may stand there by itself
ALONE = 3  # lines: nothing else was pasted, so they are what it is about
TOLD = 0.5
LINES_OF_A_SHAPE = 3  # a line that comes ten thousand times is read at its first and last occurrences only
TRIAL_FAILED = re.compile(r"\b[Tt]rial \w{1,40} (?:failed|errored)")
TRIAL_FINISHED = re.compile(r"\b[Tt]rial \w{1,40} (?:finished|completed|done)")
# As a log's last words; "done" by itself may be said of loading the data, and a buffer written out after the error.
FINISHED = re.compile(
    r"\W*(?:\w+ ){0,2}(?:training|run|job|search|experiment|script|fit) (?:is |was |has )?(?:been )?"
    r"(?:finished|completed?|done)(?: successfully| in .{1,30})?\W*",
    re.IGNORECASE,
)
IGNORED = re.compile(r"^\W{0,4}(?:.{0,60}\W)?Exception ignored in\b")
IGNORED_ABOVE = 4  # lines: the traceback follows at once, unless its frames were cut out
DIGITS = str.maketrans("", "", "0123456789")


@dataclass(frozen=True, slots=True)
class Clue:
    finding: Finding
    number: int  # of the line in the log
    who: str
    at: float | None
    kind: str  # exception, fatal, line

    def order(self) -> tuple[float, int]:
        return (self.at if self.at is not None else float("inf"), self.number)


def read_excerpt(excerpt: Excerpt) -> list[Line]:
    return [line for piece in excerpt.pieces for line in read_lines(piece.data, piece.first_line)]


def clues_of(lines: Sequence[Line]) -> list[Clue]:
    found: list[Clue] = []
    covered: set[int] = set()
    for said in voices(lines).values():
        found += _of_voice(said, covered)
    covered |= _searched_on(lines)
    rest = [line for line in lines if id(line) not in covered]
    found = [_unless_it_went_on(clue, rest) for clue in found]
    found += [_unless_it_trained(clue, rest) for clue in _of_lines(rest)]
    if _finished(lines):
        found = [
            _handled(clue) if clue.kind in ("exception", "line") and not _goes_on(clue) else clue for clue in found
        ]
    if not any(clue.finding.confidence >= TOLD for clue in found):
        found += _of_messages(rest)
        found += [Clue(finding, lines[-1].number, lines[-1].who, None, "line") for finding in of_the_last_frame(lines)]
    return found


def _of_voice(said: Sequence[Line], covered: set[int]) -> Iterable[Clue]:
    texts = [line.text for line in said]
    raised_here = chains(texts)
    ignored = _ignored_by_python(raised_here, texts)
    for chain in raised_here:
        first, last = chain[0].start_line, max(raised.last_line for raised in chain)
        covered.update(map(id, said[first : last + 1]))
        place = said[min(last, len(said) - 1)]
        for finding in from_chain(chain):
            if finding.cause == "unhandled-exception" and _as_printed(chain) in ignored:
                continue
            yield Clue(finding, place.number, place.who, said[first].at, "exception")
        for line in said[chain[-1].last_line - chain[-1].message.count("\n") + 1 : last + 1]:
            # What stands below it was taken for the rest of its message; the kernel and the scheduler say it in their own words.
            yield from (
                Clue(found, line.number, line.who, line.at, "line")
                for found in from_line(line.text)
                if CAUSES[found.cause].of_the_system and found.confidence >= TELLING
            )
    for raised in native_errors(texts)[:MOST_NATIVE]:
        place = said[raised.last_line]
        if id(place) not in covered:
            yield from (Clue(found, place.number, place.who, place.at, "native") for found in from_native(raised))
    fatal = last_fatal(texts)
    for finding in from_fatal(fatal):
        place = said[fatal.line if fatal else 0]
        yield Clue(finding, place.number, place.who, place.at, "fatal")


def _ignored_by_python(raised_here: Sequence[Sequence[Raised]], texts: Sequence[str]) -> set[tuple[str, str]]:
    """What finalizers raised: Python prints it and goes on. Several workers print the same at once, one into the other."""
    return {
        _as_printed(chain)
        for chain in raised_here
        if any(
            IGNORED.search(text) for text in texts[max(0, chain[0].start_line - IGNORED_ABOVE) : chain[0].start_line]
        )
    }


def _as_printed(chain: Sequence[Raised]) -> tuple[str, str]:
    return chain[-1].type, chain[-1].first_line


def _unless_it_went_on(clue: Clue, rest: Sequence[Line]) -> Clue:
    """Many ordinary lines after it, and the same voice among them: the script handled it."""
    after = sum(1 for line in rest if line.number > clue.number and line.who == clue.who and line.text.strip())
    return clue if after <= WENT_ON_LINES or clue.kind != "exception" else _handled(clue)


def _finished(lines: Sequence[Line]) -> bool:
    """The script's own last words: what it said before did not end it."""
    last = next((line.text.strip() for line in reversed(lines) if line.text.strip()), "")
    return FINISHED.fullmatch(last) is not None


def _handled(clue: Clue) -> Clue:
    return replace(clue, finding=replace(clue.finding, confidence=min(clue.finding.confidence, HANDLED)))


def _goes_on(clue: Clue) -> bool:
    cause = CAUSES[clue.finding.cause]
    return (cause.slows or cause.goes_on) and not cause.of_the_installation


def _unless_it_trained(clue: Clue, rest: Sequence[Line]) -> Clue:
    cause = CAUSES[clue.finding.cause]
    if _goes_on(clue) or clue.finding.confidence <= HANDLED:
        return clue
    reports = sum(1 for line in rest if line.number > clue.number and is_progress(line.text))
    return clue if reports < (REPORTS if cause.of_the_installation else MANY_REPORTS) else _handled(clue)


def _searched_on(lines: Sequence[Line]) -> set[int]:
    """The lines of a search's trials that failed, where later ones finished."""
    last = max((line.number for line in lines if "rial" in line.text and TRIAL_FINISHED.search(line.text)), default=0)
    return {id(line) for line in lines if line.number < last and TRIAL_FAILED.search(line.text)}


def _of_lines(lines: Sequence[Line]) -> list[Clue]:
    found: list[Clue] = []
    seen: dict[str, int] = {}
    for line in lines:
        text = line.text.strip()
        if len(text) < 2:
            continue
        shape = text.translate(DIGITS)[:300]
        seen[shape] = seen.get(shape, 0) + 1
        if seen[shape] > LINES_OF_A_SHAPE:
            continue
        found += [
            Clue(_mild(finding, line), line.number, line.who, line.at, "line") for finding in from_line(line.text)
        ]
    return found


def _of_messages(lines: Sequence[Line]) -> list[Clue]:
    """Where nothing else tells: a line that is the message of an exception whose name was not pasted."""
    said = [line for line in lines if line.text.strip() and not line.quiet]
    if len(said) > SHORT_LINES:
        return []
    reported = [line.number for line in said if is_progress(line.text)][-REPORTS:]
    begin = reported[0] if len(reported) == REPORTS else 0  # what stands before the last reports did not end the run
    return [
        Clue(finding, line.number, line.who, line.at, "line")
        for line in said
        if line.number > begin
        for finding in from_message(line.text, alone=len(said) <= ALONE)
    ]


def _mild(finding: Finding, line: Line) -> Finding:
    return replace(finding, confidence=min(finding.confidence, 0.3)) if line.quiet else finding
