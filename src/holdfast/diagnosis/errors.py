"""From what a recorded script printed to causes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.causes import CAUSES, SAYS_MORE
from holdfast.diagnosis.elastic import (
    explained,
    named_for_the_rank,
    of_the_first_seen,
    of_the_first_to_fail,
    raised_by,
    said_by,
)
from holdfast.diagnosis.plain_text import Line, lines_of, read_lines
from holdfast.diagnosis.reading.clues import TAKEN_CARE_OF
from holdfast.diagnosis.reading.log import Clue, clues_of
from holdfast.diagnosis.reading.ranking import findings_of
from holdfast.diagnosis.tracebacks import Raised, last_chain
from holdfast.diagnosis.weighing import SURE, at_most
from holdfast.fleet.first_stop import ECHOES_ALONE, LOST, RANKS, FirstStop, first_stop
from holdfast.fleet.stories import stories
from holdfast.recorded_events import Exit
from holdfast.vocabulary import Finding, Window

WORDS_LINES = 25
LAST_LINES = 2  # "training failed, see above"
CLOSE_LINES = 5  # a library may still say goodbye
AFTER_LINES = 60  # what loggers and progress bars may still say after the traceback that ended the script
AROUND_LINES = 40  # before it: what a worker said as it died
NUMBER = re.compile(r"^line \d+(?: \[[^\]]*\])?: ")
PROBABLY = 0.7
LOGGED_LAST = 0.65
WENT_ON = re.compile(
    r"(?i)^\W*(?:epoch|step|iter(?:ation)?|batch|it)\b\W{0,3}\d|\b(?:loss|accuracy)\b.{0,6}\d|\b\d+/\d+\b"
)
KILLS = frozenset(record.id for record in CAUSES.values() if record.ran_out == "host")
RAN_OUT_ON_CARD = frozenset(record.id for record in CAUSES.values() if record.ran_out == "gpu")
OF_THE_CARD = RAN_OUT_ON_CARD | {cause for cause, less in SAYS_MORE.items() if less & RAN_OUT_ON_CARD}
ON_THE_CPU = re.compile(r"device:CPU:\d|allocator (?:mkl)?cpu\b|DefaultCPUAllocator")
ON_A_GPU = re.compile(r"device:GPU:\d|GPU_\d+_bfc|\b(?:CUDA|HIP|GPU)\b")
PROCESS, SUMMARY = re.compile(r"\bpid=(?P<pid>\d+)"), re.compile(r"^\[Rank (?P<rank>\d+) Error Snippet\]")
HANDLED = 0.4  # a traceback that did not end the script explains little
RAISED_AT_THE_END = 0.9


def find_errors(window: Window) -> list[Finding]:
    """What the end of each stream tells, read as a pasted log is; the exit says which traceback ended the script."""
    end = window.event(Exit.KIND)
    code = Exit.of(end).code if end else 1
    texts = {name: lines_of(window.output(name)) for name in window.streams()}
    chains = {name: last_chain(lines) for name, lines in texts.items()}
    trust = {name: _trust(chains[name], lines, code) for name, lines in texts.items()}
    words_trust = HANDLED if max(trust.values(), default=0.0) > HANDLED else 1.0
    findings: list[Finding] = []
    seen = first_stop(window)
    if seen is not None and (seen.how in ECHOES_ALONE or not seen.story.alone):
        return of_one_rank(window, seen, end.at if end else None)
    for name, lines in texts.items():
        said = read_lines(window.output(name))
        if code and (first := of_the_first_to_fail(said)):
            whole = [_unnumbered(finding) for finding in findings_of(clues_of(said), said, only_the_text=False)]
            ended = whole if explained(first, whole) else first
            findings += [_from_stream(finding, name, end.at if end else None) for finding in ended]
            continue
        words = trust[name] if trust[name] > HANDLED else words_trust
        found = _of_the_end(chains[name], lines, trust[name], words)
        if any(ON_THE_CPU.search(raised.message) for raised in chains[name]):
            found = [finding for finding in found if finding.cause not in OF_THE_CARD]
        elif _without_a_card(window) and not ON_A_GPU.search(" ".join(raised.message for raised in chains[name])):
            found = [_on_the_host(finding) for finding in found]
        if seen is None:
            found = _of_the_speaker(window, read_lines(window.output(name)), found)
        at = end.at if end and trust[name] > HANDLED else None
        findings += [_from_stream(finding, name, at) for finding in found]
    if seen is not None:
        findings = [named_for_the_rank(finding, seen) for finding in findings]
    return _without_guessed_kills(window, findings)


def _of_the_speaker(window: Window, said: Sequence[Line], found: list[Finding]) -> list[Finding]:
    """What the one rank raised that raised something of its own. Ray names the process before each line, the rank before a summary."""
    ranks = {one.joined.pid: one.rank for one in stories(window)}
    lines: dict[int, list[str]] = {}
    for line in said if ranks else ():
        if process := PROCESS.search(line.who):
            lines.setdefault(int(process["pid"]), []).append(line.text)
    chains = {ranks[pid]: last_chain(texts) for pid, texts in lines.items() if pid in ranks}
    raised = {rank: chain for rank, chain in chains.items() if chain and not LOST.search(chain[-1].message)}
    if len(raised) == 1:
        ((rank, chain),) = raised.items()
        return [said_by(finding, rank) for finding in raised_by(chain)]
    summaries = {int(told["rank"]) for line in said if (told := SUMMARY.match(line.text))}
    return [said_by(finding, summaries.copy().pop()) for finding in found] if ranks and len(summaries) == 1 else found


def of_one_rank(window: Window, seen: FirstStop, at: float | None) -> list[Finding]:
    """All ranks print into the same streams: what the others say is an echo. Its traceback stands in one of them."""
    said = [(name, of_the_first_seen(read_lines(window.output(name)), seen)) for name in window.streams()]
    name, found = max(said, key=lambda one: sum(len(finding.evidence) for finding in one[1]), default=("", []))
    return [_from_stream(finding, name, at) for finding in found]


def _of_the_end(chain: Sequence[Raised], lines: Sequence[str], trust: float, words: float) -> list[Finding]:
    """The last traceback with what stands around it, or the last lines."""
    around = chain[0].start_line - AROUND_LINES if chain and trust > HANDLED else len(lines)
    begin = max(0, min(around, len(lines) - WORDS_LINES))
    said = read_lines("\n".join(lines[begin:]).encode(), begin + 1)
    last = chain[-1].last_line + 1 if chain else 0
    clues = [_trusted(clue, trust, words, last) for clue in clues_of(said)]
    return [_unnumbered(finding) for finding in findings_of(clues, said, only_the_text=False)]


def _trusted(clue: Clue, trust: float, words: float, last: int) -> Clue:
    """`last`: the line that ends the last traceback; an exception told below it, or without any, is no more than words."""
    if clue.kind != "exception" or clue.number > last:
        return replace(clue, finding=at_most(clue.finding, words))
    return replace(clue, finding=at_most(_surely_raised(clue.finding), trust))


def _without_a_card(window: Window) -> bool:
    """XLA names no device in what it says. The training process told that it was the host, and no GPU was found."""
    told = window.events("rescue.caught", "rescue.needs", "rescue.foreseen")
    return bool(told) and told[-1].data.get("of") != "gpu" and window.event("gpu.found") is None


def _on_the_host(finding: Finding) -> Finding:
    named = any(ON_A_GPU.search(item.text) for item in finding.evidence)
    return finding if named or finding.cause not in OF_THE_CARD else replace(finding, cause="host-memory-exhausted")


def _without_guessed_kills(window: Window, findings: Sequence[Finding]) -> list[Finding]:
    """A shell's `Killed` and its 137 are guessed to be about memory. Here the kernel was watched: it knows.

    Where it was not, they are still one kill, however often it is told.
    """
    guesses = [finding for finding in findings if finding.cause in KILLS and finding.confidence < SURE]
    if window.last("host.oom_kill_count") is not None:
        guessed: list[Finding] = []
    else:
        guessed = sorted(guesses, key=lambda finding: finding.confidence)[-1:]
    return [finding for finding in findings if finding not in guesses or finding in guessed]


def _trust(chain: Sequence[Raised], lines: Sequence[str], code: int) -> float:
    """How surely the last traceback is what ended the script.

    An exception that nothing handled makes Python exit with 1 (or 130) and is the last that it prints; loggers and
    threads may still say something, but so may a script that went on and left with a message. One that is caught at the
    very end of the script is logged, and then the script leaves with a code of its own.
    """
    if not chain:
        return HANDLED
    after = sum(1 for line in lines[chain[-1].last_line + 1 :] if line.strip())
    if code not in (1, 130) and code < 128:
        before = next((line for line in reversed(lines[: chain[0].start_line]) if line.strip()), "")
        if TAKEN_CARE_OF.search(before):
            return HANDLED
        went_on = any(WENT_ON.search(line) for line in lines[chain[-1].last_line - chain[-1].message.count("\n") + 1 :])
        return LOGGED_LAST if after <= LAST_LINES and not went_on else HANDLED
    return 1.0 if after <= CLOSE_LINES else PROBABLY if after <= AFTER_LINES else HANDLED


def _unnumbered(finding: Finding) -> Finding:
    """The lines of a piece have other numbers than those of the whole."""
    evidence = tuple(replace(item, text=NUMBER.sub("", item.text)) for item in finding.evidence)
    return replace(finding, evidence=evidence)


def _surely_raised(finding: Finding) -> Finding:
    """Here the exit was seen: that the script raised it is certain, whatever is to be mended.

    Unless it is known for a symptom: `RuntimeError: loss is nan` of a check in the script is no bug in that check.
    """
    if finding.cause != "unhandled-exception" or finding.confidence < HANDLED:
        return finding
    return replace(finding, confidence=max(finding.confidence, RAISED_AT_THE_END))


def _from_stream(finding: Finding, stream: str, at: float | None) -> Finding:
    told = (item if item.source == RANKS else replace(item, source=stream, at=at) for item in finding.evidence)
    return replace(finding, evidence=tuple(told))
