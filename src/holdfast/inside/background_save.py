"""One save at a time, written by a thread beside the training. Says what became of it."""

from __future__ import annotations

import atexit
import fcntl
import os
import threading
from typing import Any, Callable, Optional

from . import checkpoint_store
from .never_raise import outcome
from .telemetry import Recorder, now

AT_EXIT_S = 60.0  # a save under way when the script ends is waited for so long
OWNER = "owner"

Done = Callable[[str], object]  # told "saved", or why not


class Saver:
    def __init__(self, recorder: Recorder, directory: str) -> None:
        self._recorder = recorder
        self.directory = directory
        self._thread: Optional[threading.Thread] = None
        self._lock_fd: Optional[int] = None
        self._complained: set[str] = set()
        self.write_s = 0.0
        self.bytes = 0  # of the last one: what the next will need
        atexit.register(self.wait, AT_EXIT_S)
        os.register_at_fork(after_in_child=self._after_fork)

    def claim(self) -> bool:
        """One process of a run saves: the first that trains. The kernel gives it free when that one dies."""
        if self._lock_fd is not None:
            return True
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        fd = os.open(os.path.join(self.directory, OWNER), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._lock_fd = fd
        return True

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wait(self, seconds: Optional[float] = None) -> None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def begin(
        self, manifest: dict[str, Any], fill: Callable[[str], None], expect_bytes: int, done: Optional[Done] = None
    ) -> bool:
        """False while another is being written."""
        if self.busy:
            return False
        work = (manifest, fill, expect_bytes, done)
        self._thread = threading.Thread(target=self._save, args=work, name="holdfast-save", daemon=True)
        self._thread.start()
        return True

    def complain(self, reason: str) -> None:
        """Once for each reason."""
        if reason not in self._complained:
            self._complained.add(reason)
            self._recorder.event("checkpoint.failed", reason=reason)

    def _save(
        self, manifest: dict[str, Any], fill: Callable[[str], None], expect_bytes: int, done: Optional[Done]
    ) -> None:
        began = now()
        expected = max(expect_bytes, self.bytes)
        written, error = outcome(checkpoint_store.write, self.directory, manifest, fill, expected)
        if error is not None:  # training goes on, and the checkpoint before is kept
            result = f"{type(error).__name__}: {error}"[:300]
            self._recorder.event("checkpoint.failed", reason=result)
        else:
            self.bytes = checkpoint_store.size_of(written)
            result = "saved"
            told = {key: written.get(key) for key in ("number", "step", "fit", "epoch", "batch", "paused_s")}
            self._recorder.event("checkpoint.saved", **told, seconds=round(now() - began, 4), bytes=self.bytes)
        self.write_s = now() - began
        if done is not None:
            done(result)

    def _after_fork(self) -> None:
        """The thread is the parent's, and so is the claim: the child's copy of the descriptor would hold it."""
        self._thread = None
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None
