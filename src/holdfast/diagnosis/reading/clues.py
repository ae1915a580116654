"""From one exception, one line or one dump to what it may mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.causes import CAUSES, EXCEPTIONS, LINES, those
from holdfast.causes.form import Rule
from holdfast.diagnosis.reading.card_memory import weigh_card, weigh_gpu
from holdfast.diagnosis.reading.kernel_log import read_xid
from holdfast.diagnosis.reading.matching import fits
from holdfast.diagnosis.reading.message_values import figures_in
from holdfast.diagnosis.reading.quoting import details_of, not_there, quote, short
from holdfast.diagnosis.reading.script_errors import of_the_script
from holdfast.diagnosis.tracebacks import FatalError, Raised, user_frame
from holdfast.vocabulary import Evidence, Finding

GUESS = 0.45  # what a rule says of a text that another one explains better
NATIVE = 0.85  # a line of a log; nobody raised it
# Words of many launchers: "exits with return code = -11", "exited on signal 9", "non-zero exit status -6".
EXIT = re.compile(
    r"(?:exit(?:s|ed)?|return(?:s|ed)?)\b[^\n\d-]{0,40}\b(?:code|status|value)\b[^\w\n-]{0,6}(?P<code>-\d{1,2}|1[2-5]\d)\b"
    r"|(?:exited|terminated|killed|died)\b[^\n\d]{0,20}\bsignals?[^\w\n]{0,4}(?P<signal>\d{1,2}|SIG(?:SEGV|ABRT|BUS|TERM|ILL|FPE|KILL))\b",
    re.IGNORECASE,
)
NUMBERS = {"SIGILL": 4, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8, "SIGKILL": 9, "SIGSEGV": 11, "SIGTERM": 15}
ENDED_BY: dict[int, tuple[tuple[str, float], ...]] = {
    number: tuple((record.id, record.signals[number]) for record in CAUSES.values() if number in record.signals)
    for number in NUMBERS.values()
}
# Launchers report that a child failed; what failed is said elsewhere.
LAUNCHERS = frozenset(
    {"ChildFailedError", "CalledProcessError", "ProcessRaisedException", "ProcessExitedException", "RayTaskError"}
)

CERTAIN = 0.88  # of an exception with that message
CERTAIN_WITH_STATUS = 0.8
DRIVERS = re.compile(r"\s*(?:CUDA|HIP|NCCL|cuDNN|CUDNN|cuBLAS) (?:runtime |driver |kernel )?(?:error|Error)\b")
CERTAIN_OF_DRIVER = 0.7
# What only one exception of Python's says.
IMPLIED = (
    (
        re.compile(r"^\s*'\w+' object has no attribute '|^.{0,40}\bmodule\W{1,4}[\w.]+' has no attribute '"),
        "AttributeError",
    ),
    (re.compile(r"^\s*(?:No module named '|cannot import name '?\w)"), "ImportError"),
    (re.compile(r"^\s*[\w.]+\(\) (?:got an unexpected keyword|missing \d|takes \d)"), "TypeError"),
)
# An exception with its message in the middle of a sentence or behind something unknown.
NAMED = re.compile(
    r"(?:^|[\s`'\"(>|\]:])(?P<kind>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{2,60}(?:Error|Exception|OutOfMemory))"
    r"(?: \(see above for traceback\))?[`'\"]? ?: {0,3}"
    r"(?P<said>\S.+)"
)
GUESSED = 0.55
CALLED_AN_ERROR = re.compile(
    r"^\s{0,8}(?:\[?(?:ERROR|Error|error|FATAL|Fatal|fatal)\]?(?: error)?: |[\w./-]{1,40}: (?:fatal )?error: )"
)
TOLD_BY_A_PROGRAM = 0.74  # its own words for what stopped it: nearly an exception
LIKELY = 0.84  # of a message that was pasted by itself
ERRNO = re.compile(r"\s*\[Errno \d+\] ")  # an OSError, whatever it was called
UNNAMED = 0.92  # what is left of it where the message stands without its exception
# The statuses of TensorFlow and XLA, and the exceptions that Python makes of them.
STATUSES = {
    "INVALID_ARGUMENT": "InvalidArgumentError",
    "RESOURCE_EXHAUSTED": "ResourceExhaustedError",
    "NOT_FOUND": "NotFoundError",
    "OUT_OF_RANGE": "OutOfRangeError",
    "FAILED_PRECONDITION": "FailedPreconditionError",
    "UNIMPLEMENTED": "UnimplementedError",
    "DATA_LOSS": "DataLossError",
    "DEADLINE_EXCEEDED": "DeadlineExceededError",
    "UNAVAILABLE": "UnavailableError",
    "INTERNAL": "InternalError",
}
STATUS = re.compile(
    r"(?:^|[\s:)(])(?P<status>" + "|".join(name.replace("_", "[_ ]") for name in STATUSES) + r"):\s+(?P<said>.+)",
    re.IGNORECASE,
)
NOT_A_FAILURE = re.compile(
    r"[Ww]arning|\bWARN\b|deprecat|does not indicate an error|not a failure|Unable to initialize backend '(?!cuda|gpu)"
    r"|: [IW] \w|^[IW]\d{4} |^[IW] \S{1,120}[./]\S|\[[IWD]\]|\bINFO\b|\bDEBUG\b|^\s*#|^\+"
)


# The script itself says what it does about it.
TAKEN_CARE_OF = re.compile(
    r"^\s*[-*•] fix(?:ed|es)?\b|\bretr(?:y|ying)\b(?!: Resource)|\btrying (?:again|batch|port|\d)|\bto avoid\b(?! fragmentation)|(?<!out-of-memory )\bhandlers?\b|faulthandler|\bcontinuing\b|\bdropp(?:ing|ed) \d|\b0 corrupt|, using (?:the |a )?\w|\bplease (?:install|upgrade|update)\b.{0,60}\b(?:for|if)\b|\bskipping (?!step)|\bignored\b",
    re.IGNORECASE,
)
MENTIONED = 0.4


def from_chain(chain: Sequence[Raised]) -> list[Finding]:
    """The best explanation of a chain of exceptions, its rivals as guesses, and the exception itself."""
    if not chain:
        return []
    found = [finding for raised in chain for finding in _from_raised(raised, chain)]
    best = max((finding.confidence for finding in found), default=0.0)
    first = next((finding for finding in found if finding.confidence == best), None)
    rivals = [replace(f, confidence=min(f.confidence, GUESS)) for f in found if first and f.cause != first.cause]
    told = [first] if first else []
    return [*told, *_once(rivals), of_the_script(chain, launched=chain[-1].bare_type in LAUNCHERS)]


def _from_raised(raised: Raised, chain: Sequence[Raised]) -> list[Finding]:
    found = [
        Finding(
            cause,
            rule.confidence,
            quote(raised, chain),
            {**figures_in(raised.message), **details_of(raised, chain), **groups},
            headline=_headline(cause, rule, groups, raised),
        )
        for cause, rule in EXCEPTIONS
        if (groups := fits(rule, raised)) is not None
    ]
    if not found and raised.bare_type in LAUNCHERS:
        found = [replace(finding, evidence=quote(raised, chain)) for finding in from_exit(raised.message)]
    weighed = weigh_gpu(raised) if any(finding.cause == "gpu-memory-exhausted" for finding in found) else None
    if weighed is not None:
        details = {**details_of(raised, chain), **weighed.details}
        rest = [finding for finding in found if finding.cause != "gpu-memory-exhausted"]
        return [replace(weighed, evidence=(*quote(raised, chain), *weighed.evidence), details=details), *rest]
    return found


def _headline(cause: str, rule: Rule, groups: dict[str, str], raised: Raised) -> str:
    message = f"{CAUSES[cause].title}: {short(raised.telling_line, 110)}".rstrip(": ")
    return rule.heading(groups) or not_there(raised) or (message if CAUSES[cause].message_in_title else "")


def _once(findings: Sequence[Finding]) -> list[Finding]:
    best: dict[str, Finding] = {}
    for finding in findings:
        if finding.cause not in best or finding.confidence > best[finding.cause].confidence:
            best[finding.cause] = finding
    return list(best.values())


def from_native(raised: Raised) -> list[Finding]:
    """What it says of the cause, if anything: that native code ended is told elsewhere."""
    found = [
        Finding(cause, rule.confidence, (Evidence(short(f"{raised.type}: {raised.message}"), "stderr"),), groups)
        for cause, rule in EXCEPTIONS
        if (groups := fits(rule, raised)) is not None
    ]
    best = max(found, key=lambda finding: finding.confidence, default=None)
    return [replace(best, confidence=min(best.confidence, NATIVE))] if best is not None else []


def from_fatal(fatal: FatalError | None) -> list[Finding]:
    if fatal is None:
        return []
    evidence = [Evidence(f"Fatal Python error: {fatal.reason}", "stderr")]
    own = user_frame(tuple(reversed(fatal.frames)))
    if fatal.frames:
        evidence.append(Evidence(f"innermost Python frame: {fatal.frames[0]}", "stderr"))
    if own is not None and own != fatal.frames[0]:
        evidence.append(Evidence(f"called from {own}", "stderr"))
    cause = "illegal-instruction" if "Illegal instruction" in fatal.reason else "native-crash"
    if fatal.frames and "importlib" in fatal.frames[0].file and cause == "native-crash":
        cause = "native-library-conflict"  # it broke while a library was being loaded
    return [Finding(cause, 0.6, tuple(evidence), {"frame": f"{own.file}:{own.line}"} if own else {})]


def from_message(text: str, alone: bool = False) -> list[Finding]:
    """What a line means that may be an exception's message without its name: only what is known for certain.

    `alone`: nothing else was pasted."""
    if NOT_A_FAILURE.search(text) or TAKEN_CARE_OF.search(text):
        return []
    found = STATUS.search(text)
    kind, message = (STATUSES[found["status"].upper().replace(" ", "_")], found["said"]) if found else ("", text)
    implied = next((of_kind for words, of_kind in IMPLIED if words.search(text)), "") if not found else ""
    called = NAMED.search(text)
    if called is not None:
        kind, message = called["kind"], called["said"]
    raised = Raised(kind or implied, message.strip(), ())
    named = DRIVERS.match(text)  # the driver's own words are an exception's message in all that matters
    enough = (
        GUESSED
        if called or (implied and alone)
        else CERTAIN_OF_DRIVER
        if named
        else TOLD_BY_A_PROGRAM
        if CALLED_AN_ERROR.match(text)
        else LIKELY
        if alone
        else CERTAIN_WITH_STATUS
        if found
        else CERTAIN
    )
    told = [finding for finding in _from_raised(raised, [raised]) if finding.confidence >= enough]
    if not found and not CALLED_AN_ERROR.match(text) and not (alone and (called or ERRNO.match(text))):
        told = [finding for finding in told if finding.cause not in those("in_passing")]
    return [
        replace(finding, confidence=finding.confidence * UNNAMED, evidence=(Evidence(short(text.strip()), "stderr"),))
        for finding in _once(told)
    ]


def from_line(text: str) -> list[Finding]:
    """What a line that is no exception means; one line has one meaning, the most certain one, and perhaps guesses."""
    xid = read_xid(text) if "Xid" in text else None
    if xid is not None:
        return [xid]
    if "potential root causes" in text:  # Ray lists whatever might have been
        return [Finding("worker-died", 0.62, (Evidence(short(text.strip()), "stderr"),))]
    if "not a failure" in text:  # TensorFlow's allocator will try with less
        return []
    card = weigh_card(text) if "bytes free" in text else None
    if card is None and "total capacity" in text:
        card = weigh_gpu(Raised("", text, ()))
    if card is not None:
        return [card]
    found = [
        Finding(cause, rule.confidence, (Evidence(short(text.strip()), "stderr"),), groups)
        for cause, rule in LINES
        if (groups := rule.match(text)) is not None
    ]
    if not found:
        return from_exit(text)
    if found and TAKEN_CARE_OF.search(text):
        found = [replace(finding, confidence=min(finding.confidence, MENTIONED)) for finding in found]
    best = max((finding.confidence for finding in found), default=0.0)
    return [f for f in _once(found) if f.confidence == best or (f.confidence < 0.5 and best < 0.5)]


def from_exit(text: str) -> list[Finding]:
    """How a launcher says that a process was ended by a signal: -N, 128+N, or the signal's number."""
    found = EXIT.search(text)
    said = (found["code"] or found["signal"]) if found else "0"
    number = NUMBERS[said.upper()] if said.upper() in NUMBERS else int(said)
    number = (
        -number if number < 0 else number - 128 if 128 < number < 160 else number if found and found["signal"] else 0
    )
    evidence = (Evidence(short(text.strip()), "stderr"),)
    return [Finding(cause, confidence, evidence) for cause, confidence in ENDED_BY.get(number, ())]
