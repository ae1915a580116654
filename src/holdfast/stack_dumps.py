"""What faulthandler prints, as structure: when native code breaks, or on a signal; and what we write. Imports nothing of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

_THREAD = re.compile(
    r"^(?:(?P<current>Current thread)|Thread) 0x[0-9a-f]+.*:\s*$|^Stack \(most recent call first\):\s*$"
)
# Unlike a traceback's, without a comma after the number; the line of code is not printed.
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+?)\s*$')


@dataclass(frozen=True, slots=True)
class Frame:
    file: str
    line: int
    function: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}" if self.function else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class AnsweredFrame(Frame):
    """With a number for what each of its variables holds, where it is the script's own."""

    digests: tuple[str, ...] = ()  # NAME=NUMBER


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """`frames` innermost first. `current`: the thread that broke, or that the signal came to."""

    current: bool
    frames: tuple[Frame, ...]


# Written by `inside/stacks.py`: the kernel's id of the thread, Python's, and its name.
_HOLDS = re.compile(r"^    holds (?P<told>.+)$")
_NAMED = re.compile(r"^Thread (?P<tid>\d+) (?P<ident>0x[0-9a-f]+) (?P<name>.*)$")


def named_stacks(lines: Iterable[str]) -> list[tuple[int, int, str, tuple[AnsweredFrame, ...]]]:
    """Thread id (0 where it is not known), Python's id, name and frames, innermost first."""
    found: list[tuple[int, int, str, list[AnsweredFrame]]] = []
    for line in lines:
        if thread := _NAMED.match(line):
            found.append((int(thread["tid"]), int(thread["ident"], 16), thread["name"], []))
        elif found and (frame := _FRAME.match(line)):
            found[-1][3].append(AnsweredFrame(frame["file"], int(frame["line"]), frame["function"]))
        elif found and found[-1][3] and (holds := _HOLDS.match(line)):
            found[-1][3][-1] = replace(found[-1][3][-1], digests=tuple(holds["told"].split()))
    return [(tid, ident, name, tuple(frames)) for tid, ident, name, frames in found]


def thread_stacks(lines: Iterable[str]) -> list[ThreadStack]:
    """In the order printed. Lines that other threads print in between are passed over."""
    found: list[tuple[bool, list[Frame]]] = []
    for line in lines:
        if thread := _THREAD.match(line):
            found.append((thread["current"] is not None or line.startswith("Stack"), []))
        elif found and (frame := _FRAME.match(line)):
            found[-1][1].append(Frame(frame["file"], int(frame["line"]), frame["function"]))
    return [ThreadStack(current, tuple(frames)) for current, frames in found]


def current_frames(lines: Iterable[str]) -> tuple[Frame, ...]:
    """Of the first current thread that has some, innermost first."""
    return next((stack.frames for stack in thread_stacks(lines) if stack.current and stack.frames), ())
