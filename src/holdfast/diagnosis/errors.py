"""From what a recorded script printed to causes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.causes import CAUSES, GENERIC, SAYS_MORE
from holdfast.diagnosis.elastic import of_the_first_to_fail
from holdfast.diagnosis.plain_text import lines_of, read_lines
from holdfast.diagnosis.reading.clues import TAKEN_CARE_OF, from_chain, from_fatal, from_line
from holdfast.diagnosis.reading.log import clues_of
from holdfast.diagnosis.reading.ranking import findings_of
from holdfast.diagnosis.tracebacks import FatalError, Raised, last_chain, last_fatal
from holdfast.diagnosis.weighing import SURE
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
HANDLED = 0.4  # a traceback that did not end the script explains little
RAISED_AT_THE_END = 0.9


def find_errors(window: Window) -> list[Finding]:
    """What the last words of each stream tell."""
    end = window.event(Exit.KIND)
    code = Exit.of(end).code if end else 1
    texts = {name: lines_of(window.output(name)) for name in window.streams()}
    chains = {name: last_chain(lines) for name, lines in texts.items()}
    trust = {name: _trust(chains[name], lines, code) for name, lines in texts.items()}
    words_trust = HANDLED if max(trust.values(), default=0.0) > HANDLED else 1.0
    findings: list[Finding] = []
    for name, lines in texts.items():
        if code and (first := of_the_first_to_fail(read_lines(window.output(name)))):
            findings += [_from_stream(finding, name, end.at if end else None) for finding in first]
            continue
        found = [_at_most(_surely_raised(finding), trust[name]) for finding in from_chain(chains[name])]
        fatal = last_fatal(lines)
        found += from_fatal(fatal)
        if trust[name] > HANDLED:
            around = [_at_most(finding, trust[name]) for finding in _as_a_log(chains[name], lines)]
            found = _likelier(found, around)
        words = _from_words(_beside(chains[name], fatal, lines))
        if trust[name] > HANDLED:
            words += _of_its_own(chains[name], lines, {f.cause for f in found if f.confidence >= SURE})
        found += [_at_most(finding, words_trust) for finding in words]
        if any(ON_THE_CPU.search(raised.message) for raised in chains[name]):
            found = [finding for finding in found if finding.cause not in OF_THE_CARD]
        elif _without_a_card(window) and not ON_A_GPU.search(" ".join(raised.message for raised in chains[name])):
            found = [_on_the_host(finding) for finding in found]
        at = end.at if end and trust[name] > HANDLED else None
        findings += [_from_stream(finding, name, at) for finding in found]
    return _without_guessed_kills(window, findings)


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


def _as_a_log(chain: Sequence[Raised], lines: Sequence[str]) -> list[Finding]:
    """What stands around the traceback that ended the script: a worker's own before it, the telling line of a message."""
    begin = max(0, chain[0].start_line - AROUND_LINES)
    said = read_lines("\n".join(lines[begin:]).encode())
    found = findings_of(clues_of(said), said, only_the_text=False)
    return [_unnumbered(finding) for finding in found if finding.cause not in GENERIC and finding.confidence >= SURE]


def _likelier(found: Sequence[Finding], around: Sequence[Finding]) -> list[Finding]:
    """The same text read twice makes nothing surer: of each cause the likelier reading, with the evidence of the first."""
    known = list(found)
    for finding in around:
        place = next((i for i, before in enumerate(known) if before.cause == finding.cause), None)
        if place is None:
            known.append(finding)
        else:
            known[place] = replace(known[place], confidence=max(known[place].confidence, finding.confidence))
    return known


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


def _at_most(finding: Finding, confidence: float) -> Finding:
    return replace(finding, confidence=min(finding.confidence, confidence))


def _from_stream(finding: Finding, stream: str, at: float | None) -> Finding:
    return replace(finding, evidence=tuple(replace(item, source=stream, at=at) for item in finding.evidence))


def _beside(chain: Sequence[Raised], fatal: FatalError | None, lines: Sequence[str]) -> Sequence[str]:
    """The last lines without those of the traceback; and what stood before a native crash, whose stacks
    of all threads may be long."""
    before = lines[max(0, fatal.line - CLOSE_LINES) : fatal.line] if fatal is not None else []
    if chain:
        lines = [*lines[: chain[0].start_line], *lines[chain[-1].last_line + 1 :]]
    return [*before, *lines[-WORDS_LINES:]]


def _of_its_own(chain: Sequence[Raised], lines: Sequence[str], known: set[str]) -> list[Finding]:
    """What the traceback's own last lines say is evidence for what it was read as, and for nothing else: it knows more."""
    own = lines[chain[0].start_line : chain[-1].last_line + 1]
    return [finding for finding in _from_words(own[-WORDS_LINES:]) if finding.cause in known]


def _from_words(lines: Sequence[str]) -> list[Finding]:
    """Of each cause the line that says it best, and of several the last."""
    found: dict[str, Finding] = {}
    for line in lines:
        for finding in from_line(line):
            if finding.cause not in found or finding.confidence >= found[finding.cause].confidence:
                found[finding.cause] = finding
    return list(found.values())
