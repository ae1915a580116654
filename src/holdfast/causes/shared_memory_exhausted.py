from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, Room, rule, shell, torch
from holdfast.causes.shared.words import SHM

CAUSE = CauseRecord(
    id="shared-memory-exhausted",
    family="memory",
    title="/dev/shm is full",
    meaning="Loader workers and NCCL hand data over through shared memory, and there is too little of it. Docker gives 64 MB unless told otherwise.",
    sure="The error names shared memory, or a worker died of a bus error while /dev/shm was full.",
    says_more_than=("disk-full",),
    recipes=(
        shell("Give the container more", "docker run --shm-size=8g IMAGE"),
        shell("Make it larger on this machine", "sudo mount -o remount,size=8G /dev/shm"),
        torch("Pass batches another way", 'torch.multiprocessing.set_sharing_strategy("file_system")'),
    ),
    exceptions=(
        rule(0.96, "(?:insufficient|out of|raise your|allocate|creating) shared memory"),
        rule(0.62, "unable to open shared memory object"),
        rule(0.96, r"(?:No space left|write to file|resize)[\s\S]{0,200}(?:" + SHM + ")"),
        rule(0.96, "(?:" + SHM + r")[\s\S]{0,200}(?:No space left|Bus error)"),
        rule(0.85, "signal: Bus error"),
        rule(0.95, r"SemLock[\s\S]{0,80}(?:\[Errno 28\]|No space left)"),
        rule(
            0.96,
            r"\[Errno 28\]",
            "No space left",
            frames=r"synchronize\.py|SemLock|multiprocessing/heap|shared_memory|_share_filename|_new_shared",
        ),
    ),
    lines=(
        rule(
            0.93,
            "insufficient shared memory",
            "bus error.{0,80}shm",
            r"shared memory\(shm\)",
            "No space left.{0,80}/dev/shm",
        ),
        rule(
            0.93,
            "NCCL WARN.{0,80}(?:(?:creating|attaching to) shared memory segment|posix_fallocate failed|failed to (?:extend|create) .{0,20}(?:/dev/shm|shared memory)|Could not map /dev/shm)",
        ),
        rule(0.93, r"SemLock.{0,80}(?:\[Errno 28\]|No space left)"),
        rule(0.92, "/dev/shm.{0,80}(?:No space|full|too small)", r"unable to (?:write|resize).{0,60}/torch_\d"),
        rule(0.61, r"\bBus error\b", "总线错误", "SIGBUS", r"exitcode\s{0,4}: -7\b"),
    ),
    signals={signal.SIGBUS: 0.5},
    ruled_out=(Room("shm.free_bytes", "shm.total_bytes", "/dev/shm"),),
)
