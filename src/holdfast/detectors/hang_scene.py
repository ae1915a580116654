"""The job as it stands, and who in it waits for whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.detectors.hang_words import ends, said
from holdfast.detectors.standing_threads import Standing, StandingThread
from holdfast.stack_snapshots import ProcessSnapshot, TreeSnapshot

PROCESSES = r"multiprocessing[/\\]|concurrent[/\\]futures[/\\]process|torch[/\\]utils[/\\]data[/\\]|py_dataset_adapter|joblib[/\\]"
WAITING_CALLS = ("sleep(", ".wait(", ".get(", ".join(", ".put(", ".result(")
# A thread in one of these may yet do what another one waits for.
MAY_RELEASE = frozenset(
    {Standing.BUSY, Standing.MOVES, Standing.DISK, Standing.TIMED, Standing.READS, Standing.WRITES, Standing.FILES,
     Standing.CHILD, Standing.SHARED_LOCK, Standing.UNKNOWN, Standing.STOPPED}
)  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """The job as it stands. `gone`: processes that ended about when the silence began, by id, with their names."""

    threads: Sequence[StandingThread]
    snapshot: TreeSnapshot
    trainers: Mapping[int, int]
    gone: Mapping[int, str]

    @property
    def trainer(self) -> ProcessSnapshot | None:
        """The process that trains; before there is one, the first that runs Python."""
        python = [process for process in self.snapshot.processes if any(thread.frames for thread in process.threads)]
        trains = [process for process in self.snapshot.processes if process.pid in self.trainers]
        return next(iter(trains or python), None)

    def of(self, process: ProcessSnapshot) -> list[StandingThread]:
        return [thread for thread in self.threads if thread.process.pid == process.pid]

    def main(self, process: ProcessSnapshot) -> StandingThread | None:
        return next((thread for thread in self.of(process) if thread.is_main), None)


def waits_for_others(scene: Scene) -> StandingThread | None:
    """The trainer's main thread where it waits for something that another thread or process should bring; else None."""
    trainer = scene.trainer
    main = scene.main(trainer) if trainer is not None else None
    if main is None or main.standing in (
        Standing.BUSY,
        Standing.MOVES,
        Standing.STOPPED,
        Standing.DISK,
        Standing.FILES,
    ):
        return None
    if main.standing is Standing.TIMED and says(main, ("sleep(",)):
        return None
    return main


def who_waits(scene: Scene, main: StandingThread) -> list[str]:
    """The main thread and, where it is in native code, the script's own threads that this code has called."""
    beside = [thread for thread in scene.of(main.process) if thread.own and not thread.is_main]
    called = [thread for thread in beside if thread.standing in (Standing.READS, Standing.LOCK, Standing.TIMED)]
    return [said(thread) for thread in (*called, main)] if in_native_code(main) else [said(main)]


def waits_for_processes(scene: Scene, main: StandingThread) -> bool:
    """Whether what it waits for comes from other processes; behind native code, whether a thread that this called does."""
    if main.stands_in(PROCESSES) or main.standing is Standing.CHILD or any(end.what == "pipe" for end in ends(main)):
        return True
    beside = [thread for thread in scene.of(main.process) if not thread.is_main and thread.thread.frames]
    called = [thread for thread in beside if not any(f.function.startswith("_handle_") for f in thread.thread.frames)]
    return in_native_code(main) and any(thread.stands_in(PROCESSES) for thread in called)


def in_native_code(thread: StandingThread) -> bool:
    """The main thread, in a call of a library that waits for its own threads."""
    if not (thread.is_main and thread.standing in (Standing.LOCK, Standing.TIMED) and thread.thread.frames):
        return False
    waits_in_python = thread.stands_in(r"[/\\]threading\.py$|[/\\]queue\.py$|multiprocessing|concurrent[/\\]futures")
    return not (waits_in_python or wanted(thread) or says(thread, WAITING_CALLS))


def wanted(thread: StandingThread) -> str:
    """The lock that the line asks for, as written."""
    code = thread.own[0].code if thread.own else ""
    if code.startswith("with "):
        return code.removeprefix("with ").split("#")[0].strip().rstrip(":").strip()
    return code.partition(".acquire(")[0].strip() if ".acquire(" in code else ""


def may_release(thread: StandingThread) -> bool:
    """Library threads that wait for a time (a progress bar's, a logger's) hold nothing of the script's."""
    if thread.standing not in MAY_RELEASE:
        return False
    if thread.thread.missing or (thread.before is not None and thread.before.missing):
        return True  # it could not be asked, so nothing is known of it
    if not thread.thread.frames:  # a library's own, without Python: idle ones wait at a lock, a poll or for a time
        return thread.standing in (Standing.BUSY, Standing.MOVES, Standing.DISK)
    if not thread.own and not thread.is_main:
        return thread.standing is not Standing.TIMED
    return not in_native_code(thread)


def says(thread: StandingThread, words: Iterable[str]) -> bool:
    code = thread.own[0].code if thread.own else ""
    return any(word in code for word in words)
