"""Loaded after a framework's import: opens the channel, says hello, and hands over to the framework's adapter."""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from typing import Optional

from . import never_raise, settings
from .frameworks import BY_MODULE, TRAINERS
from .plan import notes, written_files
from .ring import Writer
from .ring_location import new_ring
from .telemetry import Recorder


class _Process:
    """This process's recorder, and the frameworks that were handed over."""

    def __init__(self) -> None:
        self.recorder: Optional[Recorder] = None
        self.channel = ""
        self.adapted: set[str] = set()
        self.notes: Optional[notes.Notes] = None  # of what is measured for a plan


_here = _Process()


def imported(name: str, channel: str) -> None:
    """A framework's import is complete. May raise: the caller in sitecustomize.py catches everything."""
    if name in _here.adapted:
        return
    _here.adapted.add(name)
    recorder = open_channel(channel)
    if notes.wanted(recorder.settings):
        _install_plan(name, recorder)
        return
    if name in TRAINERS:
        _install_trainer(name, recorder)
        return
    version = str(getattr(sys.modules[name], "__version__", "?"))
    recorder.event("framework.loaded", name=name, version=version)
    if BY_MODULE[name].counts_steps:
        _install(f"{__package__}.{name}.adapter", recorder)


@never_raise.guarded
def _install(module: str, recorder: Recorder) -> None:
    importlib.import_module(module).install(recorder)


@never_raise.guarded
def _install_plan(name: str, recorder: Recorder) -> None:
    """In a process that `holdfast plan` has started: measured, and nothing else taken over."""
    if name in BY_MODULE and BY_MODULE[name].counts_steps:
        if _here.notes is None:
            _here.notes = notes.Notes(os.path.join(_here.channel, notes.FILE))
            written_files.follow(_here.notes)
        planned = importlib.import_module(f"{__package__}.{name}.plan")
        planned.install(sys.modules[name], _here.notes, notes.wanted(recorder.settings))


@never_raise.guarded
def _install_trainer(name: str, recorder: Recorder) -> None:
    """What survives a lack of memory or a kill; steps are counted by the adapter of the framework below."""
    if settings.rescue_wanted(recorder.settings) or settings.checkpoint_wanted(recorder.settings):
        framework, file = TRAINERS[name]
        importlib.import_module(f"{__package__}.{framework}.{file}").install(recorder, name)


def recorder() -> Optional[Recorder]:
    return _here.recorder


def open_channel(channel: str) -> Recorder:
    """Once a process."""
    if _here.recorder is not None:
        return _here.recorder
    here = _here.recorder = Recorder(_new_ring(channel), settings.read(channel))
    _here.channel = channel
    never_raise.on_failure(lambda place, reason: here.event("inside.failed", place=place, reason=reason))
    os.register_at_fork(after_in_child=_go_silent)
    _say_hello(here)
    _install_stacks(here, channel)
    _install_looks(here)
    _join(here)
    return here


@never_raise.guarded
def _install_stacks(recorder: Recorder, channel: str) -> None:
    stacks = importlib.import_module(f"{__package__}.stacks")
    if reason := stacks.install(channel):
        recorder.event("stack.unavailable", reason=reason)
    elif (fd := stacks.found()) is not None:
        recorder.event("stack.ready", signal=stacks.STANDING, ask=stacks.ASK, path=f"/proc/{os.getpid()}/fd/{fd}")


@never_raise.guarded
def _join(recorder: Recorder) -> None:
    joining = importlib.import_module(f"{__package__}.rank_identity").Joining(recorder)
    recorder.on_look(joining.look)
    atexit.register(never_raise.guarded(joining.leave))


@never_raise.guarded
def _install_looks(recorder: Recorder) -> None:
    recorder.on_look(importlib.import_module(f"{__package__}.resident_memory").Resident(recorder).look)
    examiner = importlib.import_module(f"{__package__}.examine").Examiner(recorder)
    recorder.on_command("examine", examiner.begin)
    recorder.on_look(examiner.look)
    importlib.import_module(f"{__package__}.relieve").install(recorder)
    importlib.import_module(f"{__package__}.batch_at_failure").install(recorder)
    recorder.on_look(importlib.import_module(f"{__package__}.stack_helper").StackHelper().look)


def _new_ring(channel: str) -> Writer:
    """A later process with the same pid finds the name taken: then there is no ring, and the edge keeps us silent."""
    return new_ring(os.path.join(channel, f"{os.getpid()}.ring"))


def _say_hello(recorder: Recorder) -> None:
    recorder.event(
        "inside.hello",
        parent=os.getppid(),
        python=sys.version.split()[0],
        executable=sys.executable,
        script=sys.argv[0] if sys.argv else "",
        gpus_hidden=os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"),
    )


class _SilentUntilStep(Writer):
    """What a forked child writes to. It shares its parent's map and must not write there.

    A loader worker never trains, so it stays silent; a child that takes a training step gets a ring of its own.
    """

    def __init__(self) -> None:
        pass

    def step(self, *record: object) -> None:
        recorder = _here.recorder
        if recorder is not None and recorder.writer is self:
            recorder.writer = _new_ring(_here.channel)
            _say_hello(recorder)
            recorder.writer.step(*record)  # type: ignore[arg-type]

    def value(self, *_: object) -> None:
        pass

    def text(self, *_: object, **__: object) -> None:
        pass

    def command(self) -> None:
        return None


def _go_silent() -> None:
    if _here.recorder is not None:
        _here.recorder.after_fork(_SilentUntilStep())
