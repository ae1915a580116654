"""Lines of the kernel log about kills, faults, disks, heat and GPUs, as they are written."""

from __future__ import annotations

import errno
import os
import re

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import under, why
from holdfast.vocabulary import Event

RECORD_BYTES = 16384  # a record is at most 8 KiB; a smaller buffer would fail with EINVAL
RECORDS_A_READ = 1000
LINES_A_READ = 50

RELEVANT = re.compile(
    r"oom-kill|out of memory|fork rejected|killed process|invoked oom-killer|oom_reaper"
    r"|NVRM|\bXid\b|nvidia.*(?:fallen off|error|fail)|amdgpu.*(?:error|fault|reset|timeout)"
    r"|segfault|\btraps:|general protection|invalid opcode|divide error|bus error|stack segment|unhandled signal"
    r"|blocked for more than|soft lockup|hard lockup|rcu.*stall"
    r"|I/O error|(?:EXT4|XFS|BTRFS|F2FS|JBD2).*(?:error|warning|corrupt|abort|shut)|nfs:.*(?:not responding|OK)"
    r"|remounting filesystem read-only|No space left|lustre.*error|nvme.*(?:timeout|reset|error)"
    r"|throttl|thermal|critical temperature|temperature above"
    r"|machine check|\bmce:|hardware error|EDAC|PCIe Bus Error|uncorrect",
    re.IGNORECASE,
)


class KernelLog:
    name = "kernel_log"
    every_s = 0.0

    def __init__(self, scope: Scope) -> None:
        try:
            self._fd = os.open(under(scope.root, "/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError as error:
            raise Missing(f"the kernel log cannot be read ({why(error)})") from None

    def read(self, now: float) -> list[Reading]:
        lines: list[Reading] = []
        for _ in range(RECORDS_A_READ):
            try:
                record = os.read(self._fd, RECORD_BYTES)
            except OSError as error:
                if (
                    error.errno == errno.EPIPE
                ):  # overwritten before it was read; the next read starts at the oldest record left
                    continue
                if error.errno in (errno.EAGAIN, errno.EINVAL):
                    break
                raise
            if not record:
                break
            line = _relevant(record, now)
            if line is not None:
                lines.append(line)
            if len(lines) >= LINES_A_READ:
                break
        return lines

    def close(self) -> None:
        os.close(self._fd)


def _relevant(record: bytes, now: float) -> Event | None:
    """`priority,sequence,microseconds,flags;text`, then lines of details that begin with a space."""
    head, _, rest = record.partition(b";")
    text = rest.split(b"\n", 1)[0].decode("utf-8", "replace")
    fields = head.split(b",")
    if len(fields) < 3 or not RELEVANT.search(text):
        return None
    try:
        sequence, uptime_s = int(fields[1]), int(fields[2]) / 1e6
    except ValueError:
        return None
    return Event("kernel.line", now, {"text": text[:1000], "seq": sequence, "uptime_s": uptime_s})
