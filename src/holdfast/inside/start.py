"""Loaded after a framework's import: opens the channel, says hello, and hands over to the framework's adapter."""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Optional

from . import guard
from .ring import Writer
from .telemetry import Recorder

SMALL, LARGE = 128, 4096  # slots of a helper process, of a trainer
ADAPTERS = {"torch": "torch", "tensorflow": "tensorflow", "keras": "keras", "jax": "jax"}


class _Process:
    """This process's recorder, and the frameworks that were handed over."""

    def __init__(self) -> None:
        self.recorder: Optional[Recorder] = None
        self.adapted: set[str] = set()


_here = _Process()


def imported(name: str, channel: str) -> None:
    """A framework's import is complete. Called at the edge: what goes wrong here is swallowed there."""
    adapter = ADAPTERS.get(name)
    if adapter is None or name in _here.adapted:
        return
    _here.adapted.add(name)
    recorder = _here.recorder or _open(channel)
    if recorder is None:
        return
    module = sys.modules[name]
    recorder.event("framework.loaded", name=name, version=str(getattr(module, "__version__", "?")))
    if recorder.role == "trainer":
        guard.guarded(importlib.import_module(f"{__package__}.{adapter}.adapter").install)(recorder)


def recorder() -> Optional[Recorder]:
    return _here.recorder


def _open(channel: str) -> Optional[Recorder]:
    """A second process with this pid (a reused one) finds the name taken and stays silent."""
    role = "helper" if "multiprocessing" in sys.modules and _is_worker() else "trainer"
    path = os.path.join(channel, f"{os.getpid()}.ring")
    writer = Writer(path, LARGE if role == "trainer" else SMALL)
    here = _here.recorder = Recorder(writer, role)
    guard.on_failure(lambda place, reason: here.event("inside.failed", place=place, reason=reason))
    os.register_at_fork(after_in_child=_go_silent)
    here.event(
        "inside.hello",
        pid=os.getpid(),
        role=role,
        python=sys.version.split()[0],
        executable=sys.executable,
        script=sys.argv[0] if sys.argv else "",
        at_monotonic=time.monotonic(),
    )
    guard.guarded(importlib.import_module(f"{__package__}.stacks").install)(here, channel)
    return here


def _is_worker() -> bool:
    return sys.modules["multiprocessing"].parent_process() is not None


class _Silent(Writer):
    """What a forked child writes to: nothing."""

    def __init__(self) -> None:
        pass

    def step(self, *_: object) -> None:
        pass

    def value(self, *_: object) -> None:
        pass

    def text(self, *_: object, **__: object) -> None:
        pass

    def command(self) -> None:
        return None


def _go_silent() -> None:
    if _here.recorder is not None:
        _here.recorder.writer = _Silent()
