"""Takes the stacks of all processes of a job, with what each thread waits for. Bounded in time, whatever state they are in.

What a thread waits for is read before it is asked: a signal makes the kernel begin some calls again, under another name.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from holdfast.inside.library_paths import is_library
from holdfast.inside.stacks import HELPER
from holdfast.probes.blocked_on import BlockedOn, call_of
from holdfast.probes.descriptors import Descriptors, PipeHolders
from holdfast.probes.kernel_files import read
from holdfast.probes.tree import TICK_S, Stat, stat_of
from holdfast.stack_snapshots import ProcessSnapshot, SourceFrame, ThreadSnapshot, TreeSnapshot, Wait
from holdfast.supervisor.source_lines import source_of
from holdfast.supervisor.stack_signals import Answers, CannotAsk, StackSignals

PATIENCE_S = 5.0  # for all of it; 60 threads take some 10 ms where Python answers
MOST_PROCESSES, MOST_THREADS = 64, 400
COMMAND_CHARACTERS = 200
PROC = "/proc"


def below(pid: int) -> list[int]:
    """Its descendants, parents first."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"{PROC}/{one}/task"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    found += [int(child) for child in read(f"{PROC}/{one}/task/{task}/children").split()]
    return found[1:]


def take(pids: Iterable[int], patience_s: float = PATIENCE_S) -> TreeSnapshot:
    began, at = time.monotonic(), time.time()
    until = began + patience_s
    pipes = PipeHolders(until)
    processes: list[ProcessSnapshot] = []
    missing = ""
    wanted = list(pids)
    for pid in wanted[:MOST_PROCESSES]:
        if time.monotonic() >= until:
            missing = f"no time was left for {len(wanted) - len(processes)} of {len(wanted)} processes"
            break
        stat = stat_of(PROC, pid)
        if stat is not None:
            processes.append(_process(stat, pipes, until))
    if len(wanted) > MOST_PROCESSES:
        missing = f"only the first {MOST_PROCESSES} of {len(wanted)} processes were asked"
    return TreeSnapshot(at, time.monotonic() - began, tuple(processes), missing)


def with_code(snapshot: TreeSnapshot) -> TreeSnapshot:
    """With the lines of code of the script's own frames, and their files as seen from where it runs. Reads the user's files, so it may wait for a file system that hangs."""
    return replace(snapshot, processes=tuple(_process_with_code(process) for process in snapshot.processes))


def _process(stat: Stat, pipes: PipeHolders, until: float) -> ProcessSnapshot:
    if stat.state in "ZX":
        return _of(stat, (), "it has ended")
    blocked = BlockedOn(stat.pid, Descriptors(stat.pid, pipes))
    seen = [thread for tid in _tids(stat.pid) if (thread := _thread(stat.pid, tid, blocked)) is not None]
    threads = [thread for thread, _ in seen if thread.name != HELPER]
    if stat.state in "Tt":
        return _of(stat, tuple(threads), "it is stopped")
    try:
        asked = StackSignals(stat.pid, until)
    except CannotAsk as error:
        return _of(stat, tuple(threads), str(error))
    try:
        answers = asked.ask([thread.tid for thread, _ in seen], until)
    except CannotAsk as error:
        return _of(stat, tuple(threads), str(error))
    finally:
        asked.close()
    _place(answers, [(thread, stack_pointer) for thread, stack_pointer in seen if thread.name != HELPER], stat.pid)
    told = (
        replace(
            thread,
            name=answers.names.get(thread.tid) or thread.name,
            frames=tuple(
                SourceFrame(frame.file, frame.line, frame.function, condition=getattr(frame, "digests", ()))
                for frame in answers.frames.get(thread.tid, ())
            ),
            missing=answers.missing.get(thread.tid, ""),
        )
        for thread in threads
    )
    return replace(_of(stat, tuple(told), ""), gil_held=answers.gil_held)


def _place(answers: Answers, threads: list[tuple[ThreadSnapshot, int]], pid: int) -> None:
    """Python's id of a thread is the address of its control block, in the same piece of memory as the stack it runs on."""
    areas = _memory_areas(pid) if answers.unplaced else []
    for ident, frames in answers.unplaced:
        first, last = next((area for area in areas if area[0] <= ident < area[1]), (0, 0))
        free = [(thread, pointer) for thread, pointer in threads if thread.tid not in answers.frames]
        here = [thread for thread, pointer in free if first <= pointer < last]
        running = [thread for thread, pointer in free if not pointer]
        for thread in here[:1] or sorted(running, key=lambda thread: -thread.cpu_s)[:1]:
            answers.frames[thread.tid] = frames


def _memory_areas(pid: int) -> list[tuple[int, int]]:
    lines = (line.split()[0].split("-") for line in _text(f"{PROC}/{pid}/maps").splitlines())
    return [(int(first, 16), int(last, 16)) for first, last in lines]


def _of(stat: Stat, threads: tuple[ThreadSnapshot, ...], missing: str) -> ProcessSnapshot:
    try:
        command = read(f"{PROC}/{stat.pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        command = ""
    command = command[:COMMAND_CHARACTERS] or stat.name
    return ProcessSnapshot(
        stat.pid,
        stat.parent,
        stat.name,
        command,
        stat.state,
        stat.cpu_s,
        stat.started,
        threads,
        missing,
        traced=_traced(stat.pid),
    )


def _traced(pid: int) -> bool:
    return any(
        line.split()[1:] != ["0"] for line in _text(f"{PROC}/{pid}/status").splitlines() if line.startswith("TracerPid")
    )


def _tids(pid: int) -> list[int]:
    """The main thread first."""
    with contextlib.suppress(OSError):
        tids = sorted(int(name) for name in os.listdir(f"{PROC}/{pid}/task"))  # noqa: PTH208
        return [pid, *(tid for tid in tids if tid != pid)][:MOST_THREADS]
    return []


def _thread(pid: int, tid: int, blocked: BlockedOn) -> tuple[ThreadSnapshot, int] | None:
    """And its stack pointer; 0 while it runs."""
    folder = f"{PROC}/{pid}/task/{tid}"
    try:
        line = read(f"{folder}/stat").decode("utf-8", "replace")
    except OSError:
        return None
    name, _, rest = line.partition("(")[2].rpartition(")")
    fields = rest.split()
    wchan, call = _text(f"{folder}/wchan").replace("\0", ""), call_of(_text(f"{folder}/syscall"))
    wait: Wait | None = None if fields[0] == "R" else blocked.wait(call, wchan)
    ran_ns = _text(f"{folder}/schedstat").partition(" ")[0]  # exact; the other counts ticks of 10 ms
    cpu_s = int(ran_ns) / 1e9 if ran_ns.isdigit() else (int(fields[11]) + int(fields[12])) * TICK_S
    wchan = "" if wchan == "0" else wchan
    thread = ThreadSnapshot(tid, name, fields[0], cpu_s, wchan=wchan, syscall=call.name, wait=wait)
    return thread, call.stack_pointer


def _text(path: str) -> str:
    try:
        return read(path).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _process_with_code(process: ProcessSnapshot) -> ProcessSnapshot:
    try:
        cwd = Path(os.readlink(f"{PROC}/{process.pid}/cwd"))  # noqa: PTH115
    except OSError:
        return process
    threads = (
        replace(thread, frames=tuple(_with_source(frame, cwd) for frame in thread.frames)) for thread in process.threads
    )
    return replace(process, threads=tuple(threads))


def _with_source(frame: SourceFrame, cwd: Path) -> SourceFrame:
    if is_library(frame.file):
        return replace(frame, condition=())
    source = source_of(str(cwd / frame.file))
    within = (
        frame.function.startswith("<") and frame.function != "<module>"
    )  # a comprehension or a lambda has no loop of its own
    return SourceFrame(
        frame.file.removeprefix(f"{cwd}{os.sep}"),
        frame.line,
        frame.function,
        source.line(frame.line),
        "" if within else source.endless_loop(frame.line),
        source.locks_held(frame.line),
        _of_the_condition(source.condition_names(frame.line), frame.condition),
    )


def _of_the_condition(names: frozenset[str], digests: tuple[str, ...]) -> tuple[str, ...]:
    known = {digest.partition("=")[0]: digest for digest in digests}
    return tuple(known[name] for name in sorted(names & known.keys()))
