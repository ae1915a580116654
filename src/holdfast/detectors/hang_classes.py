"""Why nothing moves, by where every thread of the job stood in two looks: one verdict, or none where it may just take long.

What is certain comes first: a stopped or dead worker, a device that does not answer, a loop or native code that keeps the interpreter,
locks that nobody is left to release. Then what may yet end: reads, sleeps, locks of several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from holdfast.detectors import hang_ranks
from holdfast.detectors.hang_scene import (
    Scene,
    in_native_code,
    may_release,
    waits_for_others,
    waits_for_processes,
    wanted,
    who_waits,
)
from holdfast.detectors.hang_verdict import Verdict
from holdfast.detectors.hang_words import at, ends, in_the_kernel, path, place, said, who
from holdfast.detectors.standing_threads import Standing, StandingThread, standing_threads
from holdfast.stack_snapshots import ProcessSnapshot, RecordedStacks

MOST_TOLD = 6  # threads in the evidence
AT_EXIT = (("threading.py", "_shutdown"), ("util.py", "_exit_function"))


def classify(first: RecordedStacks, second: RecordedStacks, gone: Mapping[int, str]) -> Verdict | None:
    """None where the job works, is looked at by a person, or nothing can be said."""
    threads = standing_threads(first.snapshot, second.snapshot)
    scene = Scene(threads, second.snapshot, second.trainers, gone)
    if scene.trainer is None or any(thread.debugged for thread in threads) or _at_a_prompt(scene):
        return None
    both = {process.pid for process in first.snapshot.processes if process.gil_held}
    held = [process for process in second.snapshot.processes if process.gil_held and process.pid in both]
    rules: tuple[Callable[[], Verdict | None], ...] = (
        lambda: hang_ranks.stopped(scene) or _stopped(scene),
        lambda: _on_a_device(scene),
        lambda: _interpreter_held(scene, held),
        lambda: _endless_loop(scene),
        lambda: None if _somebody_works(scene) else _when_nobody_works(scene),
    )
    return next((verdict for rule in rules if (verdict := rule()) is not None), None)


def _when_nobody_works(scene: Scene) -> Verdict | None:
    among_ranks = partial(hang_ranks.among, of_one=_of_one)
    rules: tuple[Callable[[Scene], Verdict | None], ...] = (
        _dead_worker, among_ranks, _deadlock, _waiting_for_each_other, _may_yet_end,
    )  # fmt: skip
    return next((verdict for rule in rules if (verdict := rule(scene)) is not None), None)


# -- what a person does, and what works


def _at_a_prompt(scene: Scene) -> bool:
    """A terminal is read, or the script its standard input."""
    first = scene.snapshot.processes[0].pid
    return any(
        end.what == "terminal" or (end.fd == 0 and thread.process.pid == first)
        for thread in scene.threads
        if thread.standing is Standing.READS
        for end in ends(thread)
    )


def _somebody_works(scene: Scene) -> bool:
    """Any thread of the job computes, or goes from place to place."""
    return any(
        thread.standing is Standing.BUSY
        or (thread.standing is Standing.MOVES and (thread.own or not thread.thread.frames))
        for thread in scene.threads
    )


# -- what is certain


def _stopped(scene: Scene) -> Verdict | None:
    stopped = [process for process in scene.snapshot.processes if process.state in "Tt"]
    waits = waits_for_others(scene)
    if not stopped or len(stopped) == len(scene.snapshot.processes) or waits is None:
        return None
    worker, waiting = stopped[0], who_waits(scene, waits)
    text = f"process {worker.pid} ({worker.name}) is stopped (state {worker.state}), as by SIGSTOP; kill -CONT {worker.pid} lets it go on"
    return Verdict("worker-died", 0.88, "A worker process is stopped", (text, *waiting), soon=True)


def _on_a_device(scene: Scene) -> Verdict | None:
    for thread in scene.threads:
        # In that state it can answer for its stack only where another thread does.
        if thread.standing is Standing.DISK and (thread.thread.frames or thread.is_main):
            place = path(thread)
            text = (
                f"{said(thread)}; state D{in_the_kernel(thread)}: not even a signal reaches it until the device answers"
            )
            return Verdict("io-stall", 0.9, f"It is blocked on {place or 'a device'}", (text,), soon=True)
    return None


def _interpreter_held(scene: Scene, held: Sequence[ProcessSnapshot]) -> Verdict | None:
    """Native code keeps the GIL: no thread of that process runs Python meanwhile."""
    for process in held:
        threads = [thread for thread in scene.of(process) if thread.own]
        busy = [thread for thread in threads if thread.standing is Standing.BUSY]
        still = [thread for thread in threads if thread.standing is not Standing.TIMED]
        holder = next(iter(busy or still), None)
        if holder is None or holder.standing is Standing.MOVES:
            continue
        text = f"{said(holder)}; native code that was called there has kept the interpreter's lock in every look"
        if busy:
            return Verdict("infinite-loop", 0.85, f"Native code does not return at {place(holder)}", (text,), soon=True)
        headline = f"Native code waits with the interpreter's lock held at {place(holder)}"
        return Verdict("deadlock", 0.88, headline, (text,), soon=True)
    return None


def _endless_loop(scene: Scene) -> Verdict | None:
    for thread in scene.threads:
        frame = thread.loop
        if thread.standing is not Standing.BUSY or frame is None:
            continue
        inner = [said(thread)] if thread.own and thread.own[0] != frame else []
        ran = thread.thread.cpu_s - (thread.before.cpu_s if thread.before else 0.0)
        text = f"{who(thread)} ran all the time ({ran:.1f} s between two looks) in the loop `{frame.loop}`, now at {at(frame)}"
        waits = [
            said(one) for one in [waits_for_others(scene)] if one is not None and one.process.pid != thread.process.pid
        ]
        return Verdict(
            "infinite-loop",
            0.85,
            f"The loop at {at(frame, code=False)} does not end",
            (text, *inner, *waits),
            soon=not thread.loop_moves,
        )
    return None


def _dead_worker(scene: Scene) -> Verdict | None:
    """The trainer waits for processes, and one of them has ended."""
    waits = waits_for_others(scene)
    if waits is None or _leaving(scene, waits.process) or any(_stuck_child(scene, thread) for thread in scene.threads):
        return None
    names = {waits.process.name} | {
        process.name for process in scene.snapshot.processes if process.parent == waits.process.pid
    }
    zombies = [
        p for p in scene.snapshot.processes if p.state in "ZX" and p.parent == waits.process.pid and p.name in names
    ]
    gone = {pid: name for pid, name in scene.gone.items() if name in names and scene.snapshot.process(pid) is None}
    if not (zombies or gone) or not waits_for_processes(scene, waits):
        return None
    pid, name = (zombies[0].pid, zombies[0].name) if zombies else next(iter(gone.items()))
    how = "has ended and nobody has asked how" if zombies else "ended as the silence began"
    alone = all(end.holders == () for end in ends(waits)) and bool(ends(waits))
    text = f"process {pid} ({name}), a child of the one that waits, {how}"
    nobody = ("nobody else holds the other end of the pipe that is read",) if alone else ()
    return Verdict(
        "worker-died",
        0.9,
        "A worker process died, and its work is waited for",
        (text, *who_waits(scene, waits), *nobody),
        True,
        alone,
    )


def _stuck_child(scene: Scene, thread: StandingThread) -> bool:
    """A process of the script's own code that lives, and stands still itself."""
    trainer = scene.trainer
    return trainer is not None and thread.process.pid != trainer.pid and thread.is_main and bool(thread.own)


def _deadlock(scene: Scene) -> Verdict | None:
    """A lock of one process's own, and no thread left in it that could release it."""
    trainer = scene.trainer
    others = [process for process in scene.snapshot.processes if trainer is None or process.pid != trainer.pid]
    waits = waits_for_others(scene)
    for process in [*(others if waits is not None else ()), *([trainer] if trainer is not None else ())]:
        threads = scene.of(process)
        main = scene.main(process)
        if main is None or (main.standing is not Standing.LOCK and not in_native_code(main)):
            continue
        blocked = [thread for thread in threads if thread.standing is Standing.LOCK and thread.own]
        if process is trainer and in_native_code(main) and len(threads) > 1:
            # What it waits for there, only that code knows; but no other process can release a lock of its own.
            blocked = [thread for thread in blocked if thread is not main]
        cycle = _cycle(blocked)
        own_locks = bool(cycle) or bool(wanted(main))
        fed = [thread for thread in threads if thread.standing in (Standing.READS, Standing.WRITES)]
        if fed and not own_locks:
            continue  # native code that waits for a peer may call back, and bring what is waited for
        if not blocked or any(may_release(thread) for thread in threads if thread.own or not own_locks):
            continue
        told = [said(thread) for thread in _odd_first(blocked, main)]
        left = f"no thread of process {process.pid} is left to release it: all {len(threads)} wait"
        waiting = [said(waits)] if waits is not None and waits.process.pid != process.pid else []
        headline = _leaving(scene, process) or f"It is deadlocked at {place(_odd_first(blocked, main)[0])}"
        return Verdict("deadlock", 0.95, headline, (*cycle, *told, left, *waiting)[:MOST_TOLD], soon=True, proven=True)
    return None


def _waiting_for_each_other(scene: Scene) -> Verdict | None:
    """A process that waits for the end of another, which waits for somebody to read what it writes."""
    parents = {main.process.pid: main for main in _joining(scene)}
    for thread in scene.threads:
        parent = parents.get(thread.process.parent)
        if parent is None or thread.standing is not Standing.WRITES:
            continue
        readers = {pid for end in ends(thread) for pid in end.holders or ()}
        beside = [one for one in scene.of(parent.process) if one.own and one is not parent]
        if (
            readers <= {parent.process.pid, thread.process.pid}
            and readers
            and not any(may_release(one) for one in beside)
        ):
            text = f"process {thread.process.pid} waits until what it writes is read, {parent.process.pid} reads only once that one has ended"
            return Verdict(
                "deadlock", 0.9, f"It is deadlocked at {place(parent)}", (said(parent), said(thread), text), True, True
            )
    return None


def _joining(scene: Scene) -> list[StandingThread]:
    return [thread for thread in scene.threads if thread.standing is Standing.CHILD and thread.is_main]


# -- what may yet end


def _may_yet_end(scene: Scene) -> Verdict | None:
    waits = waits_for_others(scene)
    trainer = scene.trainer
    main = scene.main(trainer) if trainer is not None else None
    children = [
        t for t in scene.threads if trainer is not None and t.process.pid != trainer.pid and t.own and t.is_main
    ]
    suspects = [*(children if waits is not None else ()), *([main] if main is not None else ())]
    beside = [
        t for t in scene.threads if t.own and not t.is_main and trainer is not None and t.process.pid == trainer.pid
    ]
    if main is not None and (in_native_code(main) or main.standing is Standing.LOCK):
        suspects = [*suspects[:-1], *beside, main]
    for thread in suspects:
        if (verdict := _of_one(scene, thread)) is not None:
            also = [said(waits)] if waits is not None and waits is not thread else []
            return replace(verdict, evidence=(*verdict.evidence, *also))
    return None


def _of_one(scene: Scene, thread: StandingThread) -> Verdict | None:
    end = next(iter(ends(thread)), None)
    text = (f"{said(thread)}{in_the_kernel(thread)}",)
    if thread.standing is Standing.FILES or (
        end is not None and end.what == "file" and thread.standing is not Standing.SHARED_LOCK
    ):
        if end is not None and end.what == "pipe":
            return Verdict("io-stall", 0.75, f"It waits for a named pipe that nobody else has opened: {end.text}", text)
        return Verdict("io-stall", 0.85, f"It is blocked on {path(thread) or 'a file system'}", text, of_files=True)
    if thread.standing in (Standing.READS, Standing.WRITES) and end is not None and end.what == "socket":
        return Verdict("io-stall", 0.75, f"It waits for an answer that does not come: {end.text}", text)
    if thread.standing is Standing.READS and end is not None and end.what == "pipe":
        writers = [scene.snapshot.process(pid) for pid in end.holders or ()]
        joined = [main for main in _joining(scene) if main.process.pid == thread.process.parent]
        if joined:
            headline = (
                _leaving(scene, joined[0].process) or f"It waits for a process that waits, too, at {place(thread)}"
            )
            return Verdict("deadlock", 0.8, headline, text)
        if end.holders == ():
            return Verdict("io-stall", 0.8, "It reads from a pipe that nobody else can write to", text)
        if any(process is not None for process in writers):
            return Verdict("deadlock", 0.7, f"It waits for a process that waits, too, at {place(thread)}", text)
        return Verdict("io-stall", 0.7, f"It waits for a pipe at {place(thread)}", text)
    if thread.standing in (Standing.SHARED_LOCK, Standing.LOCK, Standing.CHILD, Standing.READS):
        return Verdict("deadlock", 0.7, _leaving(scene, thread.process) or f"It waits at {place(thread)}", text)
    if thread.standing is Standing.TIMED and thread.own:
        loop = f" in the loop `{thread.loop.loop}`" if thread.loop is not None else ""
        return Verdict("deadlock", 0.6, f"It waits again and again{loop} at {place(thread)}", text)
    return None


def _leaving(scene: Scene, process: ProcessSnapshot) -> str:
    """For a process whose script is over."""
    main = scene.main(process)
    for frame in main.thread.frames if main is not None else ():
        if any(frame.file.endswith(file) and frame.function == function for file, function in AT_EXIT):
            return "The script is over, and what it has started keeps it from ending"
    return ""


def _cycle(blocked: Sequence[StandingThread]) -> tuple[str, ...]:
    """Each holds what another one wants, by the names in the source."""
    told = []
    for thread in blocked:
        wants = wanted(thread)
        holds = [name for frame in thread.own for name in frame.holds]
        if wants and holds:
            told.append((holds[-1], wants, f"{who(thread)} holds {holds[-1]} and wants {wants}"))
    all_wanted, held = {wants for _, wants, _ in told}, {holds for holds, _, _ in told}
    return (" while ".join(text for _, _, text in told),) if len(told) > 1 and all_wanted == held else ()


def _odd_first(blocked: Sequence[StandingThread], main: StandingThread) -> list[StandingThread]:
    """Those that hold something come first, the main thread before others of its kind."""
    return sorted(blocked, key=lambda t: (not any(f.holds for f in t.own), t is not main, t.thread.tid))
