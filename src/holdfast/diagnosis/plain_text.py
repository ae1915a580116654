"""Output as a person would have read it: no colours, no overwritten progress bars, no prefixes of ranks and clocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from holdfast.diagnosis.characters import decoded
from holdfast.diagnosis.pasted import moved_left, unwrapped, without_a_margin

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[PX^_][^\x1b\n]{0,400}\x1b\\|[@-Z\\-_])"
)
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
LINE_CHARACTERS = 2000
PASTED_CHARACTERS = 20_000  # a whole traceback whose line ends were lost

# Who says it: a rank, a container, a worker. The label is kept, so that interleaved voices can be told apart.
SPEAKERS = (
    re.compile(r"\[(?P<who>rank\s?\d+|default\d+|\d{1,5})\]:\s?"),  # torchrun
    re.compile(r"\[(?P<who>rank:? ?\d+)\] "),  # Lightning
    re.compile(r"\[(?P<who>\d+,\s*\d+)\]<std(?:err|out)>:\s?"),  # mpirun --tag-output
    re.compile(r"\((?P<who>[\w.:<>-]{1,60}(?: rank=\d+)? pid=\d+(?:, ip=[\d.]+)?)\)\s?"),  # Ray
    re.compile(r"\[(?P<who>pod/[\w./-]{1,120})\] "),  # kubectl logs --prefix
    re.compile(r"(?P<who>[A-Za-z][\w.-]{0,40}[-_]\d{1,4}) {1,30}\| ?"),  # docker compose
    re.compile(r"(?P<who>[A-Za-z][\w.-]{0,40}[-_]\d{1,4})(?:: | > )(?=Traceback| {2}File |\S{1,60}Error)"),
)
NUMBERED = re.compile(r"\s{0,3}(?P<who>\d{1,4}): ?")  # srun --label; believed where most lines have it
SYSLOG = re.compile(r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d (?:[\w.-]{1,60} )?(?=[\w./-]{1,40}(?:\[\d+\])?: |\[)")
CLOCKS = (
    re.compile(
        r"\[?(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?P<zone>Z|[+-]\d\d:?\d\d)?\]?"
        r"(?: std(?:err|out) [FP])?(?: - |,? | ?\| ?|:(?= ))?"
    ),
    SYSLOG,
)
SYSLOG_NAME = re.compile(r"(?P<name>[\w./@-]{1,40}?)(?:\[\d+\])?: ")
GLOG = re.compile(r"(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d{3,6} {1,3}\d+ \S{1,120}\] (?:\[[\w/:,. ]{1,40}\] )?")
LEVEL = re.compile(
    r"(?:- )?[\[<(]?(?P<level>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)[\])>]?(?:\s{0,8}[-:|] ?| ?)"
    r"(?:\[[\w./:<>-]{1,80}\]:? ?)?"
)
QUIET = frozenset({"DEBUG", "INFO"})
SAID_IN_JSON = re.compile(r'"(?P<name>log|msg|message|text|line|event|textPayload)": ?"')
# A step's or an epoch's own report: the run is alive.
PROGRESS = re.compile(
    r"\bloss['\"]?\s{0,3}[:=]?\s{0,3}(?:tensor\()?-?\d|\d+/\d+ \[[=>.#█ |]|\d ?(?:s/it|it/s)\b|\dm?s/step",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Line:
    """`who` said it; `stamped` when a clock stood before it, `at` what the clock said."""

    text: str
    number: int = 0
    who: str = ""
    at: float | None = None
    stamped: bool = False
    quiet: bool = False  # its own logger calls it information


def lines_of(output: bytes) -> list[str]:
    return [line.text for line in read_lines(output)]


def read_lines(output: bytes, first_number: int = 1) -> list[Line]:
    text = ESCAPES.sub("", decoded(output))
    if "\r" in text and "\n" not in text.rstrip():
        text = text.replace("\r", "\n")
    drawn = unwrapped([_last_drawn(line)[:PASTED_CHARACTERS] for line in text.split("\n")])
    labelled = _are_labelled([line for _, line in drawn])
    lines = [_read(line[:LINE_CHARACTERS], first_number + number, labelled) for number, line in drawn]
    said = [line.text for line in lines if line.text.strip()]
    change = without_a_margin(said) or moved_left(said)
    return [_read_again(line, change(line.text)) for line in lines] if change is not None else lines


def _read_again(line: Line, text: str) -> Line:
    """Behind a margin that nobody knows may stand one that is known."""
    if text == line.text:
        return line
    found = _read(text, line.number, labelled=False)
    at = found.at if found.at is not None else line.at
    return replace(
        found, who=found.who or line.who, at=at, stamped=found.stamped or line.stamped, quiet=found.quiet or line.quiet
    )


def _are_labelled(lines: list[str]) -> bool:
    """Whether `3: ` before a line is a task's number: then nearly every line has one."""
    said = [line for line in lines[-400:] if line.strip()]
    return len(said) >= 3 and sum(NUMBERED.match(line) is not None for line in said) >= 0.9 * len(said)


def _read(raw: str, number: int, labelled: bool) -> Line:
    text, who, at, stamped, quiet = _wrapped_in_json(raw), "", None, False, False
    for _ in range(6):
        if labelled and not who and (found := NUMBERED.match(text)):
            who, text = f"task {found['who']}", text[found.end() :]
        elif spoken := next((found for form in SPEAKERS if (found := form.match(text))), None):
            who, text = who if spoken["who"] in who else f"{who} {spoken['who']}".strip(), text[spoken.end() :]
        elif clock := next((found for form in CLOCKS if (found := form.match(text))), None):
            if _is_frameworks(text[clock.end() :]):
                break  # TensorFlow writes clock, level and file in one; its rules read them together
            at, stamped, text = at if at is not None else _moment(clock), True, text[clock.end() :]
            if clock.re is SYSLOG and (name := SYSLOG_NAME.match(text)):
                text = text[name.end() :] if name["name"] not in ("slurmstepd", "srun", "error") else text
        elif (level := GLOG.match(text)) or (stamped and (level := LEVEL.match(text))):
            quiet, stamped, text = quiet or level["level"] in QUIET, True, text[level.end() :]
        else:
            break
    if text.startswith("│ ") and text.rstrip().endswith("│"):  # a box drawn by Rich
        text = text[2:].rstrip()[:-1].rstrip()
    return Line(UNPRINTABLE.sub("", text), number, who, at, stamped, quiet)


def _is_frameworks(rest: str) -> bool:
    return re.match(r":? ?[IWEF] (?:tensorflow|external|xla|\S{0,80}\.cc)", rest) is not None


def _moment(clock: re.Match[str]) -> float | None:
    groups = clock.groupdict()
    if not groups.get("at"):
        return None
    try:
        stamp = datetime.fromisoformat(groups["at"].replace(",", ".")[:26])
    except ValueError:
        return None
    return stamp.replace(tzinfo=UTC).timestamp()


def _wrapped_in_json(line: str) -> str:
    """Docker's own file, and many loggers', hold one object a line: {"log":"…\\n","stream":"stderr","time":"…"}."""
    if not line.startswith('{"') or not (named := SAID_IN_JSON.search(line)):
        return line
    try:
        return str(json.loads(line)[named["name"]]).rstrip("\n")
    except (ValueError, KeyError, TypeError, RecursionError):
        return line[8:] if line.startswith('{"log":"') else line


def _last_drawn(line: str) -> str:
    """What a carriage return leaves visible: the last part drawn over the line."""
    if "\r" not in line:
        return line
    return next((part for part in reversed(line.split("\r")) if part), "")


def is_progress(text: str) -> bool:
    return ("oss" in text or "/" in text) and PROGRESS.search(text) is not None


def voices(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Each speaker's lines in order."""
    said: dict[str, list[Line]] = {}
    for line in lines:
        said.setdefault(line.who, []).append(line)
    return said
