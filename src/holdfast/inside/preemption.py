"""A scheduler takes the machine away: SIGTERM, or a warning signal before it. Save at the next step, then end as asked.

Python runs handlers in its main thread, between two steps of the interpreter; the save waits for the step's boundary.
A handler of the user's own runs after the save, with the signal he asked for. Workers that are forked get their
signals back as they were.

While native code hangs no handler of Python's runs, and the default effect is taken away: the watcher is told which
signals were taken and which were heard, and ends the process for us where one is not.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from typing import Any, Callable, Optional

from .never_raise import guarded
from .telemetry import Recorder

WARNINGS = ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU")
PATIENCE_S = 10.0  # a validation, a download: if no step ends within this, the signal does what it does without us
WIRE = ".signals"  # a pipe in the channel: Python's C handler writes the number of each signal into it, whatever hangs

Save = Callable[[Callable[[], None]], bool]  # given what is to happen afterwards; False where nothing is trained


class Preemption:
    def __init__(self, recorder: Recorder, save: Save) -> None:
        self._recorder = recorder
        self._save = save
        self._theirs: dict[int, Any] = {}  # what the script has asked for, by signal
        self._coming: set[int] = set()  # signals that wait for a step to end
        self._set, self._get = signal.signal, signal.getsignal
        self._pid = os.getpid()
        self._wire: Optional[int] = None
        self._installed = False

    def install(self) -> None:
        """Once there is something to save. In the main thread only: nowhere else may Python set a handler. What is
        ignored stays ignored."""
        if self._installed or threading.current_thread() is not threading.main_thread():
            return
        self._installed = True
        for name in WARNINGS:
            number = getattr(signal, name, None)
            if number is not None and self._can_take(number, self._get(number)):
                self._theirs[number] = self._get(number)
                self._set(number, self._arrived)
        signal.signal, signal.getsignal = self._patched_set(), self._patched_get()
        os.register_at_fork(after_in_child=self._give_up)
        self._tell_taken()
        self._open_wire()

    @guarded
    def _tell_taken(self) -> None:
        """Those that would end the process without us."""
        taken = [int(number) for number, theirs in self._theirs.items() if theirs is signal.SIG_DFL]
        self._recorder.event("signals.taken", signals=taken)

    @guarded
    def _open_wire(self) -> None:
        """For a signal that is sent straight to this process. Left to whoever uses it already, or later (asyncio does)."""
        channel = os.environ.get("HOLDFAST_CHANNEL")
        if not channel:
            return
        path = os.path.join(channel, f"{self._pid}{WIRE}")
        with contextlib.suppress(OSError):  # a file system without pipes: then only what the watcher passes on is known
            os.mkfifo(path, 0o600)
            wire = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            before = signal.set_wakeup_fd(wire, warn_on_full_buffer=False)
            if before == -1:
                self._wire = wire
                return
            signal.set_wakeup_fd(before)
            os.close(wire)

    def _can_take(self, number: int, handler: Any) -> bool:
        """A warning signal that somebody handles is his; SIGTERM is taken before his."""
        return handler is signal.SIG_DFL or (number == signal.SIGTERM and callable(handler))

    @guarded
    def _tell_heard(self, number: int) -> None:
        self._recorder.event("signal.heard", signal=int(number))

    def _arrived(self, number: int, frame: Any) -> None:
        self._tell_heard(number)
        theirs = self._theirs.get(number, signal.SIG_DFL)
        if number in self._coming or not self._begin(number):
            self._coming.discard(number)
            self._do(number, theirs, frame)

    @guarded
    def _begin(self, number: int) -> bool:
        """True when a save is on its way, and what is to follow follows it."""
        if os.getpid() != self._pid or not self._save(lambda: self._again(number)):
            return False
        self._recorder.event("preemption", signal=signal.Signals(number).name)
        self._coming.add(number)
        patience = threading.Timer(PATIENCE_S, self._again, (number,))
        patience.daemon = True
        patience.start()
        return True

    def _again(self, number: int) -> None:
        """The same signal once more: now it does what it would have done."""
        if number in self._coming:
            os.kill(os.getpid(), number)

    def _do(self, number: int, theirs: Any, frame: Any) -> None:
        if callable(theirs):
            theirs(number, frame)
        elif theirs is signal.SIG_DFL:
            # A warning before the end ends as the end itself: what is seen outside is 143, "terminated".
            self._set(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    # -- a handler that is set later

    def _patched_set(self) -> Any:
        set_handler = self._set

        @functools.wraps(set_handler)
        def setting(number: Any, handler: Any) -> Any:
            took = guarded(self._take_over)(number, handler)
            return set_handler(number, handler) if took is None else took[0]

        return setting

    def _take_over(self, number: Any, handler: Any) -> Optional[tuple[Any]]:
        if os.getpid() != self._pid or int(number) not in self._theirs:
            return None
        if threading.current_thread() is not threading.main_thread():
            return None  # Python says so itself
        before = self._theirs[int(number)]
        ours = self._can_take(int(number), handler)
        if not ours and not callable(handler) and handler is not signal.SIG_IGN:
            return None
        self._theirs[int(number)] = handler
        self._set(number, self._arrived if ours else handler)
        self._tell_taken()
        return (before,)

    def _patched_get(self) -> Any:
        get_handler = self._get

        @functools.wraps(get_handler)
        def getting(number: Any) -> Any:
            found = get_handler(number)
            return self._theirs.get(int(number), found) if found == self._arrived else found

        return getting

    @guarded
    def _give_up(self) -> None:
        for number, theirs in self._theirs.items():
            if self._get(number) == self._arrived:
                self._set(number, theirs)
        signal.signal, signal.getsignal = self._set, self._get
        if self._wire is not None:
            theirs = signal.set_wakeup_fd(-1)
            if theirs not in (self._wire, -1):
                signal.set_wakeup_fd(theirs)
            os.close(self._wire)
            self._wire = None
