"""Python tracebacks and faulthandler dumps, as structure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

START = re.compile(r"(?:Original |Exception Group )?Traceback \(most recent call last\):\s*$")
SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ")
GROUP_MARGIN = re.compile(r"^ *[|+](?:-+ \d+ -+)? ?")
FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?$')
RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*)|:?\s*)$")
LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
FATAL = re.compile(r"^Fatal Python error: (?P<reason>.+?)\s*$")
THREAD = re.compile(r"^(?P<current>Current thread|Thread) 0x[0-9a-f]+.*:\s*$")
NOT_THE_USERS = re.compile(r"site-packages|dist-packages|/lib/python\d|/lib64/python\d|^<frozen|importlib/_bootstrap")
MESSAGE_LINES = 40


@dataclass(frozen=True, slots=True)
class Frame:
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}" if self.function else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception of a chain. `type` as printed, dotted or not; `last_line` is where its text ends."""

    type: str
    message: str
    frames: tuple[Frame, ...]
    last_line: int = 0

    @property
    def bare_type(self) -> str:
        return self.type.rpartition(".")[2]

    @property
    def first_line(self) -> str:
        return self.message.split("\n", 1)[0]


@dataclass(frozen=True, slots=True)
class FatalError:
    """What faulthandler prints when native code breaks; `frames` innermost first, of the thread that broke."""

    reason: str
    frames: tuple[Frame, ...]


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame that is the user's own; frames run from outermost to innermost."""
    return next((frame for frame in reversed(frames) if not NOT_THE_USERS.search(frame.file)), None)


def last_chain(lines: Sequence[str]) -> list[Raised]:
    """The exceptions of the last chain printed, the first raised first."""
    lines = [GROUP_MARGIN.sub("", line) for line in lines]
    chain: list[Raised] = []
    i = 0
    while i < len(lines):
        if START.search(lines[i]) and not lines[i].startswith("Original"):
            raised, after = _traceback(lines, i + 1)
            if raised is None:
                i += 1
                continue
            linked = any(line.strip() in LINKS for line in lines[max(0, i - 3) : i])
            chain = [*chain, *raised] if linked else list(raised)
            i = after
        elif SYNTAX.match(lines[i]):
            chain, i = _syntax_error(lines, i), i + 1
        else:
            i += 1
    return chain


def _syntax_error(lines: Sequence[str], i: int) -> list[Raised]:
    """It has no traceback where the script itself cannot be read: file, line and caret stand right above it."""
    kind, _, message = lines[i].partition(": ")
    above = next((found for line in lines[max(0, i - 4) : i] if (found := FRAME.match(line))), None)
    frames = (Frame(above["file"], int(above["line"]), above["function"] or ""),) if above else ()
    return [Raised(kind, message, frames, i)]


def _traceback(lines: Sequence[str], i: int) -> tuple[list[Raised] | None, int]:
    frames, i = _frames(lines, i)
    while i < len(lines) and not lines[i].strip():
        i += 1
    raised = RAISED.match(lines[i]) if i < len(lines) else None
    if not frames or raised is None:
        return None, i
    message = [raised["message"] or ""]
    i += 1
    inner: list[Raised] = []
    while i < len(lines) and len(message) < MESSAGE_LINES and lines[i].strip() not in LINKS:
        if START.match(lines[i]):
            if lines[i].startswith("Original"):  # a worker's own, carried in the message
                found, i = _traceback(lines, i + 1)
                inner = found or []
            break
        message.append(lines[i])
        i += 1
    text = "\n".join(message).rstrip()
    last_line = i - len(message) + text.count("\n")
    return [*inner, Raised(raised["type"], text, tuple(frames), last_line)], i


def _frames(lines: Sequence[str], i: int) -> tuple[list[Frame], int]:
    frames: list[Frame] = []
    while i < len(lines):
        if match := FRAME.match(lines[i]):
            frames.append(Frame(match["file"], int(match["line"]), match["function"] or ""))
        elif (lines[i].strip() and not lines[i].startswith(" ")) or (
            not lines[i].strip() and frames and i + 1 < len(lines) and not lines[i + 1].startswith(" ")
        ):
            break
        i += 1
    return frames, i


def last_fatal(lines: Sequence[str]) -> FatalError | None:
    starts = [i for i, line in enumerate(lines) if FATAL.match(line)]
    if not starts:
        return None
    match = FATAL.match(lines[starts[-1]])
    assert match is not None
    frames: list[Frame] = []
    in_current = False
    for line in lines[starts[-1] + 1 :]:
        if thread := THREAD.match(line):
            if frames:
                break
            in_current = thread["current"] == "Current thread"
        elif in_current and (frame := FRAME.match(line)):
            frames.append(Frame(frame["file"], int(frame["line"]), frame["function"] or ""))
    return FatalError(match["reason"], tuple(frames))
