"""What a thread waits for in the kernel, by its system call: a lock, a time, the end of a pipe, a path, a peer.

The call and its arguments are told to an ancestor of the process, or to root; where they cannot be read, the name of the kernel's
function that it sleeps in tells less.
"""

from __future__ import annotations

import contextlib
import os
import platform
import struct
from dataclasses import dataclass, replace

from holdfast.probes.descriptors import Descriptors
from holdfast.stack_snapshots import End, Wait, WaitKind

RUNNING = "running"
FUTEX_PRIVATE, FUTEX_COMMANDS = 128, 0x7F
LOCKING = (7, 38)  # F_SETLKW, F_OFD_SETLKW of fcntl
POLLED = 16  # descriptors of a poll that are looked up
PATH_BYTES = 512

_FIRST_IS_FD = {
    "read": WaitKind.READ, "readv": WaitKind.READ, "pread64": WaitKind.READ, "recvfrom": WaitKind.READ,
    "recvmsg": WaitKind.READ, "accept": WaitKind.READ, "accept4": WaitKind.READ, "getdents64": WaitKind.READ,
    "write": WaitKind.WRITE, "writev": WaitKind.WRITE, "pwrite64": WaitKind.WRITE, "sendto": WaitKind.WRITE,
    "sendmsg": WaitKind.WRITE, "connect": WaitKind.CONNECT, "fsync": WaitKind.FILE, "fdatasync": WaitKind.FILE,
    "fstat": WaitKind.FILE, "close": WaitKind.FILE, "ioctl": WaitKind.OTHER,
}  # fmt: skip
_PATH_ARGUMENT = {
    "open": 0, "stat": 0, "lstat": 0, "unlink": 0, "rename": 0, "mkdir": 0, "statfs": 0, "access": 0, "chdir": 0,
    "openat": 1, "newfstatat": 1, "statx": 1, "unlinkat": 1, "renameat2": 1, "mkdirat": 1, "faccessat": 1,
}  # fmt: skip
_X86_64 = (
    "read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 ioctl=16 pread64=17 pwrite64=18 readv=19 writev=20 access=21 "
    "select=23 sched_yield=24 pause=34 nanosleep=35 connect=42 accept=43 sendto=44 recvfrom=45 sendmsg=46 recvmsg=47 wait4=61 "
    "semop=65 fcntl=72 flock=73 fsync=74 fdatasync=75 chdir=80 rename=82 mkdir=83 unlink=87 statfs=137 futex=202 "
    "getdents64=217 restart_syscall=219 semtimedop=220 clock_nanosleep=230 epoll_wait=232 waitid=247 openat=257 mkdirat=258 "
    "newfstatat=262 unlinkat=263 faccessat=269 pselect6=270 ppoll=271 epoll_pwait=281 accept4=288 renameat2=316 statx=332 "
    "epoll_pwait2=441"
)
_AARCH64 = (
    "epoll_pwait=22 fcntl=25 ioctl=29 flock=32 mkdirat=34 unlinkat=35 statfs=43 faccessat=48 chdir=49 openat=56 close=57 "
    "getdents64=61 read=63 write=64 readv=65 writev=66 pread64=67 pwrite64=68 pselect6=72 ppoll=73 newfstatat=79 fstat=80 "
    "fsync=82 fdatasync=83 waitid=95 futex=98 nanosleep=101 clock_nanosleep=115 sched_yield=124 restart_syscall=128 "
    "semtimedop=192 semop=193 accept=202 connect=203 sendto=206 recvfrom=207 sendmsg=211 recvmsg=212 accept4=242 wait4=260 "
    "renameat2=276 statx=291 epoll_pwait2=441"
)
_TABLES = {"x86_64": _X86_64, "aarch64": _AARCH64}
# Where only the kernel's function is known, and for a call that was begun again after a signal.
_BY_FUNCTION = (
    ("futex", WaitKind.LOCK), ("nanosleep", WaitKind.SLEEP), ("hrtimer", WaitKind.SLEEP), ("ep_poll", WaitKind.POLL),
    ("poll_schedule", WaitKind.POLL), ("do_poll", WaitKind.POLL), ("do_select", WaitKind.POLL), ("pipe_read", WaitKind.READ),
    ("pipe_write", WaitKind.WRITE), ("wait_woken", WaitKind.READ), ("sk_wait", WaitKind.READ), ("unix_stream", WaitKind.READ),
    ("do_wait", WaitKind.CHILD), ("fuse", WaitKind.FILE), ("nfs", WaitKind.FILE), ("rpc_wait", WaitKind.FILE),
    ("request_wait", WaitKind.FILE), ("io_schedule", WaitKind.FILE), ("folio_wait", WaitKind.FILE),
    ("locks_lock", WaitKind.SHARED_LOCK), ("flock", WaitKind.SHARED_LOCK), ("n_tty", WaitKind.READ),
)  # fmt: skip


def names_of(machine: str) -> dict[int, str]:
    rows = (row.split("=") for row in _TABLES.get(machine, "").split())
    return {int(number): name for name, number in rows}


_NAMES = names_of(platform.machine())


@dataclass(frozen=True, slots=True)
class Call:
    """`name` is empty where it could not be read, RUNNING while the thread is not in the kernel."""

    name: str
    arguments: tuple[int, ...] = ()
    stack_pointer: int = 0


def call_of(text: str) -> Call:
    """A line of /proc/<pid>/task/<tid>/syscall."""
    words = text.split()
    if not words:
        return Call("")
    if words[0] == RUNNING:
        return Call(RUNNING)
    if words[0] == "-1":
        return Call("blocked outside of a call")  # a page fault: a mapped file that is being read
    arguments = tuple(int(word, 16) for word in words[1:7])
    stack_pointer = int(words[7], 16) if len(words) > 7 else 0
    return Call(_NAMES.get(int(words[0]), f"call {words[0]}"), arguments, stack_pointer)


class BlockedOn:
    """Of one process's threads."""

    def __init__(self, pid: int, descriptors: Descriptors) -> None:
        self._pid = pid
        self._descriptors = descriptors

    def wait(self, call: Call, wchan: str) -> Wait | None:
        """None where it waits for nothing."""
        if call.name == RUNNING:
            return None
        if call.name in ("", "restart_syscall") or not call.arguments:
            return _by_function(wchan, timed=True if call.name == "restart_syscall" else None)
        return self._by_call(call.name, call.arguments, wchan) or _by_function(wchan, timed=None)

    def _by_call(self, name: str, arguments: tuple[int, ...], wchan: str) -> Wait | None:
        if name == "futex":
            shared = not arguments[1] & FUTEX_PRIVATE
            return Wait(WaitKind.SHARED_LOCK if shared else WaitKind.LOCK, timed=arguments[3] != 0)
        if name in ("nanosleep", "clock_nanosleep", "pause"):
            return Wait(WaitKind.SLEEP, timed=name != "pause")
        if name == "flock" or (name == "fcntl" and arguments[1] in LOCKING):
            return Wait(WaitKind.SHARED_LOCK, False, self._ends([arguments[0]]))
        if name in ("semop", "semtimedop"):
            return Wait(WaitKind.SHARED_LOCK, name == "semtimedop" and arguments[3] != 0)
        if name in ("wait4", "waitid"):
            return Wait(WaitKind.CHILD, False)
        if name in ("poll", "ppoll", "select", "pselect6"):
            return self._polled(name, arguments)
        if name.startswith("epoll"):
            return Wait(WaitKind.POLL, timed=_signed(arguments[3]) >= 0)
        if name in _FIRST_IS_FD:
            end = self._descriptors.end(arguments[0], of_a_pipe="pipe" in wchan)
            return Wait(_FIRST_IS_FD[name], False, (end,))
        if name in _PATH_ARGUMENT:
            path = self._memory(arguments[_PATH_ARGUMENT[name]], PATH_BYTES).split(b"\0")[0].decode("utf-8", "replace")
            end = self._descriptors.of_path(path)
            if "partner" in wchan:  # opening a named pipe that nobody has opened on the other side
                end = replace(end, what="pipe", holders=())
            return Wait(WaitKind.FILE, False, (end,) if path else ())
        return None

    def _polled(self, name: str, arguments: tuple[int, ...]) -> Wait:
        if name in ("select", "pselect6"):
            timed = arguments[4] != 0
            numbers = self._selected(arguments[1], arguments[0]) if arguments[1] else []
        else:
            timed = _signed(arguments[2]) >= 0 if name == "poll" else arguments[2] != 0
            packed = self._memory(arguments[0], 8 * min(arguments[1], POLLED))
            numbers = [fd for fd, _, _ in struct.iter_unpack("<ihh", packed[: len(packed) // 8 * 8]) if fd >= 0]
        if not numbers and timed:
            return Wait(WaitKind.SLEEP, True)
        return Wait(WaitKind.POLL, timed, self._ends(numbers))

    def _selected(self, address: int, count: int) -> list[int]:
        bits = int.from_bytes(self._memory(address, (min(count, 1024) + 7) // 8), "little")
        return [fd for fd in range(min(count, 1024)) if bits >> fd & 1][:POLLED]

    def _ends(self, numbers: list[int]) -> tuple[End, ...]:
        return tuple(self._descriptors.end(number) for number in numbers)

    def _memory(self, address: int, length: int) -> bytes:
        """What a call points to, in the process's own memory."""
        with contextlib.suppress(OSError, OverflowError):
            fd = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(fd, length, address)
            finally:
                os.close(fd)
        return b""


def _by_function(wchan: str, timed: bool | None) -> Wait | None:
    kind = next((kind for word, kind in _BY_FUNCTION if word in wchan), None)
    return None if kind is None else Wait(kind, True if kind is WaitKind.SLEEP else timed)


def _signed(argument: int) -> int:
    """A C int, which the kernel prints as it stands in its register."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low
