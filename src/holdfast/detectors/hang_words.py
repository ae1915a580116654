"""Where a thread stands, in words a person can check."""

from __future__ import annotations

from holdfast.detectors.standing_threads import StandingThread
from holdfast.stack_snapshots import End, ProcessSnapshot, SourceFrame

NETWORK_FILES = ("nfs", "fuse", "cifs", "smb", "ceph", "lustre", "9p", "glusterfs", "beegfs", "gpfs", "afs", "virtiofs")


def said(thread: StandingThread) -> str:
    return f"{who(thread)} {thread.standing.value} at {place(thread, code=True)}"


def who(thread: StandingThread) -> str:
    name = "the main thread" if thread.is_main else f"thread {thread.thread.name}"
    return f"{name} of {whose(thread.process)}"


def whose(process: ProcessSnapshot) -> str:
    return f"process {process.pid}" if process.rank is None else f"rank {process.rank} (process {process.pid})"


def place(thread: StandingThread, code: bool = False) -> str:
    """Where the script's own code stands; a library's where none of it is there."""
    frame = next(iter(thread.own or thread.thread.frames), None)
    return at(frame, code) if frame is not None else "a place without Python"


def at(frame: SourceFrame, code: bool = True) -> str:
    return f"{frame}: {frame.code}" if code and frame.code else str(frame)


def in_the_kernel(thread: StandingThread) -> str:
    wait = thread.thread.wait or (thread.before.wait if thread.before else None)
    leads = ", ".join(_described(end) for end in (wait.ends if wait else ()))
    call = thread.thread.syscall if thread.thread.syscall not in ("", "running", "restart_syscall") else ""
    kernel = ", ".join(
        part for part in (call and f"in {call}()", thread.thread.wchan and f"kernel: {thread.thread.wchan}") if part
    )
    return f" ({'; '.join(part for part in (leads, kernel) if part)})" if leads or kernel else ""


def _described(end: End) -> str:
    where = f"{end.text} on {end.filesystem}" if end.filesystem else end.text
    if end.what != "pipe" or end.holders is None:
        return where
    holders = ", ".join(map(str, end.holders)) or "nobody else"
    return f"{where}, whose other end is held by {holders}"


def path(thread: StandingThread) -> str:
    for end in ends(thread):
        if end.what == "file":
            kind = end.filesystem.split(" ")[0]
            remote = f" ({end.filesystem})" if kind.startswith(NETWORK_FILES) else ""
            return f"{end.text}{remote}"
    return ""


def ends(thread: StandingThread) -> tuple[End, ...]:
    for one in (thread.thread, thread.before):
        if one is not None and one.wait is not None and one.wait.ends:
            return one.wait.ends
    return ()
