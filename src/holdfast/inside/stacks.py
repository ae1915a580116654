"""The stacks of this process's threads on demand, in two ways.

Whoever can run Python writes the stacks of all threads, under the GIL: on ASK, the main thread between two of its instructions or,
where one runs (`stack_helper.py`), a thread of ours that waits for it. A thread that stands still in native code or in the kernel is
asked by itself, on STANDING, and answered in C by faulthandler; that needs no GIL. Never a thread that runs Python: faulthandler
crashed the process in one of 10 to 400 dumps of a busy one (Python 3.11 to 3.13, code that C code calls back).

The answers lie in memory, in a file that has no path: writing them waits for no disk, and the watcher finds it among the open
descriptors by its name, which says whose it is and which signals are meant. Installed at the start of every Python, since a
worker may never import a framework. So this file imports nothing of ours and nothing that costs: it is run by sitecustomize.
"""

import _signal  # type: ignore[import-not-found]
import _thread
import atexit
import faulthandler
import os
import sys

# Near the top, where nobody was seen to use one; left alone where somebody does.
STANDING = int(_signal.SIGRTMAX) - 8
ASK = STANDING - 1
NAME = "holdfast-stacks"
HELPER = "hf-stacks"  # the name of the thread of ours that answers ASK
END = "End of stacks"
MOST_FRAMES = 100
LOOKED_INTO = 4  # of the script's own frames, the innermost: 50 threads of 60 such frames took 7 ms, which is too long
MOST_NAMES = 30  # of a frame, and of an object in it
LIBRARIES = ("site-packages", "dist-packages", f"{os.sep}lib{os.sep}python", "<frozen", f"holdfast{os.sep}inside")

_answers: list[int] = []  # the descriptor they are written to; a list, since a forked child has another one


def install(channel: str) -> str:
    """Why not, where it is not. The handlers stay: without them the signals' default effect is to end the process. As Python ends it
    takes them away, and the script's libraries may take seconds after that: from there on the signals are ignored."""
    if found() is not None:
        return ""
    if any(_signal.getsignal(number) is not _signal.SIG_DFL for number in (STANDING, ASK)):
        return f"signals {ASK} and {STANDING} are in use"
    _signal.signal(STANDING, _signal.SIG_IGN)  # what faulthandler puts back in the end
    _open(channel)
    _signal.signal(ASK, lambda _number, _frame: write())
    atexit.register(_signal.signal, ASK, _signal.SIG_IGN)  # Python leaves that as it is, and a handler of its own not
    os.register_at_fork(after_in_child=lambda: _open_in_child(channel))
    return ""


def found() -> "int | None":
    """The descriptor that this process's stacks are written to."""
    name = _name()
    for number in os.listdir("/proc/self/fd"):
        try:
            if name in os.readlink(f"/proc/self/fd/{number}"):
                return int(number)
        except OSError:
            continue
    return None


def write(descriptor: "int | None" = None) -> None:
    """The Python stacks of all threads. In a signal's handler: nothing that is wrong with us may reach the script."""
    try:
        names = _threads()
        lines = []
        for ident, frame in sys._current_frames().items():
            tid, name = names.get(ident, (0, ""))
            lines.append(f"Thread {tid} {ident:#x} {name}\n")
            lines += _lines(frame)
            del frame
        lines.append(f"{END}\n")
        os.write(_answers[-1] if descriptor is None else descriptor, "".join(lines).encode("utf-8", "replace"))
    except Exception:  # noqa: BLE001 - the edge: no answer is an answer, too
        return


def _lines(frame: object) -> list[str]:
    found: list[str] = []
    looked = 0
    while frame is not None and len(found) < MOST_FRAMES:
        code = frame.f_code  # type: ignore[attr-defined]
        found.append(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}\n')  # type: ignore[attr-defined]
        if looked < LOOKED_INTO and not any(part in code.co_filename for part in LIBRARIES):
            looked += 1
            found += _digests(frame)
        frame = frame.f_back  # type: ignore[attr-defined]
    return found


def _digests(frame: object) -> list[str]:
    """What each variable of a frame of the script's holds, as a number: whether a loop gets on is seen by whether they change. No
    value leaves the process, and nothing of the script's own is called."""
    told: list[str] = []
    variables = frame.f_locals  # type: ignore[attr-defined]
    for name, value in list(variables.items())[:MOST_NAMES]:
        digest = _digest(value)
        if digest is not None:
            told.append(f"{name}={digest}")
        elif name == "self":
            inner = list(getattr(value, "__dict__", {}).items())[:MOST_NAMES]
            told += [f"self.{key}={digest}" for key, one in inner if (digest := _digest(one)) is not None]
    return [f"    holds {' '.join(told)}\n"] if told else []


def _digest(value: object) -> "int | None":
    """Of plain numbers and texts, and how many a collection holds."""
    if value is None or type(value) in (bool, int, float, str, bytes):
        return hash(value) & 0xFFFFFFFF
    if type(value) in (list, dict, set, tuple) or type(value).__module__ == "collections":
        return len(value)  # type: ignore[arg-type]
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return hash(value.item()) & 0xFFFFFFFF  # type: ignore[attr-defined]
    return None


def _threads() -> dict[int, tuple[int, str]]:
    """By the name Python has for each: the kernel's, and the one it was given. Those that C code has made are not all known."""
    threading = sys.modules.get("threading")
    known = list(getattr(threading, "_active", {}).items())
    here = {_thread.get_ident(): (_thread.get_native_id(), "")}
    named = {ident: (getattr(thread, "native_id", 0) or 0, str(thread.name).split("\n")[0]) for ident, thread in known}
    return {**here, **named}


def _name() -> str:
    return f"{NAME}-{os.getpid()}-{STANDING}-{ASK}"


def _open(channel: str) -> None:
    try:
        fd = os.memfd_create(_name(), os.MFD_CLOEXEC)
    except (AttributeError, OSError):  # an old C library, or a kernel that allows no such files
        fd = os.open(os.path.join(channel, _name()), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if fd <= 2:  # started with a standard stream closed: that number is not ours to take
        fd, taken = _above_the_standard_streams(fd), fd
        os.close(taken)
    faulthandler.register(STANDING, file=fd, all_threads=False, chain=False)
    _answers[:] = [fd]


def _above_the_standard_streams(fd: int) -> int:
    copy = os.dup(fd)
    if copy > 2:
        return copy
    higher = _above_the_standard_streams(copy)
    os.close(copy)
    return higher


def _open_in_child(channel: str) -> None:
    """A forked child has its parent's file, where its answers would stand between the parent's."""
    try:
        parents = _answers[-1]
        _open(channel)
        os.close(parents)
    except Exception:  # noqa: BLE001 - the edge: a child without stacks is a child all the same
        return
