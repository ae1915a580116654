"""A dump of all threads, as gdb and py-spy print it of a program that hangs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.diagnosis.plain_text import Line
from holdfast.vocabulary import Evidence, Finding

THREAD = re.compile(
    r"^[* ]{0,3}\d{1,4} {1,6}Thread 0x[0-9a-f]+ .{0,300}$|^Thread \d{1,7} \((?:idle|active)[^)]{0,40}\)"
)
LOCK = re.compile(
    r"pthread_(?:cond|mutex|rwlock)_\w*(?:wait|lock)|futex|sem_(?:timed)?wait|lll_lock_wait|\bacquire \(|\bwait \(threading"
)
WAITING = re.compile(
    LOCK.pattern + r"|\b(?:poll|epoll_wait|select|select_poll_poll|accept4?|nanosleep|recv|read) ?\(|\(idle"
)
FEW = 3


def of_the_threads(lines: Sequence[Line]) -> list[Finding]:
    """Every thread waits, and most of them for a lock."""
    at = [i for i, line in enumerate(lines) if "hread" in line.text and THREAD.match(line.text)]
    if len(at) < FEW:
        return []
    said = [" ".join(line.text for line in lines[i : i + 2]) for i in at]
    locked = sum(LOCK.search(text) is not None for text in said)
    if not all(WAITING.search(text) for text in said) or 2 * locked < len(said):
        return []
    number = lines[at[0]].number
    told = Evidence(f"line {number}: all {len(said)} threads wait, {locked} of them for a lock", "log", lines[at[0]].at)
    return [Finding("deadlock", 0.62, (told,))]
