"""torchrun's own report at the end: which rank failed first, and how. What the others say is an echo of it.

The ranks that lost their peer raise a broken connection, and torchrun ends the rest with SIGTERM: neither is the cause.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.causes import CAUSES, those
from holdfast.diagnosis.plain_text import Line
from holdfast.diagnosis.reading.clues import from_chain, from_fatal
from holdfast.diagnosis.tracebacks import Raised, chains, last_chain, last_fatal
from holdfast.diagnosis.weighing import SURE
from holdfast.fleet.first_stop import FirstStop, Stop
from holdfast.vocabulary import Evidence, Finding

REPORT = re.compile(r"ChildFailedError")
ROOT = re.compile(r"^Root Cause \(first observed failure\)")
RANK = re.compile(r"^\s*rank\s*: (?P<rank>\d+) ")
EXIT = re.compile(r"^\s*exitcode\s*: (?P<code>-?\d+) ")
PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+) in (?P<name>\S+)$")
DUMP_ENDS = re.compile(r"^Extension modules: |^\[rank")
CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE}
BY_THE_SCRIPT = "The script "  # how headlines about an exception begin
BY_SIGNAL = 0.9
KILLED = 0.7  # by whom is not told
ENDED = 0.6
RAISED = 0.9


@dataclass(frozen=True, slots=True)
class Failure:
    rank: int
    code: int

    @property
    def signal(self) -> signal.Signals | None:
        return signal.Signals(-self.code) if -self.code in set(signal.Signals) else None

    def evidence(self) -> Evidence:
        how = f"was ended by {self.signal.name}" if self.signal else f"ended with exit code {self.code}"
        return Evidence(f"rank {self.rank} failed first, says torchrun: it {how}", "stderr")


def of_the_first_seen(lines: Sequence[Line], first: FirstStop) -> list[Finding]:
    """The same where each rank's end was seen: torchrun looks ten times a second, and takes whichever it finds for the first."""
    story = first.story
    code = story.ended.code if story.ended is not None else None
    if first.how not in (Stop.RAISED, Stop.LEFT, Stop.CRASHED):
        return []  # the detectors have told
    found = _of(Failure(first.rank, code or 1), lines) or _of_its_words(first, lines)
    return [named_for_the_rank(finding, first) for finding in found]


def named_for_the_rank(finding: Finding, first: FirstStop) -> Finding:
    named = said_by(finding, first.rank)
    return replace(named, evidence=(*finding.evidence, *first.evidence()))


def said_by(finding: Finding, rank: int) -> Finding:
    told = finding.headline or CAUSES[finding.cause].title
    if told.startswith(BY_THE_SCRIPT):
        return replace(finding, headline=f"Rank {rank} {told.removeprefix(BY_THE_SCRIPT)}")
    return replace(finding, headline=f"Rank {rank}: {told[0].lower() if told[1:2].islower() else told[:1]}{told[1:]}")


def _of_its_words(first: FirstStop, lines: Sequence[Line]) -> list[Finding]:
    """Its traceback bears no rank, as where each rank has an output of its own or all print into one; what it raised was told all
    the same, and the traceback that ends in it is its own."""
    left = first.story.left
    if left is None or not left.raised:
        return []
    words = left.raised.splitlines()[0].strip()
    printed = [chain for chain in chains([line.text for line in lines]) if _ends_in(chain[-1], words)]
    if printed:
        return raised_by(printed[0])
    place = PLACE.match(left.where)
    frame = [f'  File "{place["file"]}", line {place["line"]}, in {place["name"]}'] if place else []
    return raised_by(last_chain(["Traceback (most recent call last):", *frame, *left.raised.splitlines()]))


def _ends_in(raised: Raised, words: str) -> bool:
    said = f"{raised.bare_type}: {raised.message}".splitlines()[0].strip()
    return bool(said) and (words.startswith(said) or said.startswith(words))


def of_the_first_to_fail(lines: Sequence[Line]) -> list[Finding]:
    """Nothing where torchrun has said nothing, or where the rank it names only tells of another one's end."""
    if not any(ROOT.match(line.text) for line in lines):
        return []
    failures = _failures([line.text for line in lines])
    for failure in failures:
        found = _of(failure, lines)
        lost_its_peer = failure.signal is None and any(f.cause in those("echo") and f.confidence >= SURE for f in found)
        if found and not lost_its_peer:
            return [replace(finding, evidence=(*finding.evidence, failure.evidence())) for finding in found]
    return []


def explained(first: Sequence[Finding], findings: Sequence[Finding]) -> bool:
    """Only how it ended is known of the first rank, a symptom, and the text says why: gloo throws, and the rank aborts."""
    reasons = [f for f in findings if f.confidence >= SURE and not CAUSES[f.cause].symptom]
    best = max(reasons, key=lambda finding: finding.confidence, default=None)
    return best is not None and not CAUSES[best.cause].echo and all(CAUSES[f.cause].symptom for f in first)


def _failures(lines: Sequence[str]) -> list[Failure]:
    """The one torchrun calls the root first. Those it ended itself are not among them, except where there is no other."""
    begin = max(i for i, line in enumerate(lines) if REPORT.search(line) or ROOT.match(line))
    begin = max((i for i in range(begin + 1) if REPORT.search(lines[i])), default=begin)
    found: list[Failure] = []
    root, rank = len(lines), None
    for i, line in enumerate(lines[begin:], begin):
        if ROOT.match(line):
            root = i
        elif named := RANK.match(line):
            rank = int(named["rank"])
        elif (ended := EXIT.match(line)) and rank is not None:
            found.insert(0 if i > root else len(found), Failure(rank, int(ended["code"])))
            rank = None
    return [failure for failure in found if failure.signal is not signal.SIGTERM] or found[:1]


def _of(failure: Failure, lines: Sequence[Line]) -> list[Finding]:
    if failure.signal in CRASHES:
        return _crash(lines)
    if failure.signal is signal.SIGKILL:
        return [Finding("killed", KILLED, ())]
    if failure.signal is not None:
        return [Finding("terminated", ENDED, ())]
    own = [line.text for line in lines if re.fullmatch(rf"rank\s?{failure.rank}|default{failure.rank}", line.who)]
    return raised_by(last_chain(own))


def raised_by(chain: Sequence[Raised]) -> list[Finding]:
    found = from_chain(chain)
    return [replace(f, confidence=max(f.confidence, RAISED)) if f.cause == "unhandled-exception" else f for f in found]


def _crash(lines: Sequence[Line]) -> list[Finding]:
    """With the stack that the crashed rank left, which bears no rank's label."""
    said = [line.text for line in lines]
    fatal = last_fatal(said)
    if fatal is not None:
        end = next((i for i in range(fatal.line + 1, len(said)) if DUMP_ENDS.match(said[i]) or lines[i].who), len(said))
        fatal = last_fatal(said[:end])
    found = from_fatal(fatal) or [Finding("native-crash", BY_SIGNAL, ())]
    return [replace(finding, confidence=BY_SIGNAL) for finding in found]
