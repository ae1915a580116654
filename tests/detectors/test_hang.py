"""Nothing moves: why, by where every thread stood in two looks; and what only takes long stays unsaid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.detectors import hang
from holdfast.detectors.hang_classes import Verdict, classify
from holdfast.stack_snapshots import (
    RUNS,
    End,
    ProcessSnapshot,
    RecordedStacks,
    SourceFrame,
    ThreadSnapshot,
    TreeSnapshot,
    Wait,
    WaitKind,
)
from holdfast.vocabulary import Event, Finding, Sample, Window

LOCK = Wait(WaitKind.LOCK, False)
TIMED_LOCK = Wait(WaitKind.LOCK, True)
SHARED = Wait(WaitKind.SHARED_LOCK, False)
SLEEP = Wait(WaitKind.SLEEP, True)
CHILD = Wait(WaitKind.CHILD, False)
THREADING = SourceFrame("/usr/lib/python3.11/threading.py", 327, "wait")
BOOTSTRAP = SourceFrame("/usr/lib/python3.11/threading.py", 1002, "_bootstrap")
PROCESS = SourceFrame("/usr/lib/python3.11/multiprocessing/process.py", 314, "_bootstrap")
CONNECTION = SourceFrame("/usr/lib/python3.11/multiprocessing/connection.py", 395, "_recv")
LOADER = SourceFrame("/venv/site-packages/torch/utils/data/dataloader.py", 1284, "_try_get_data")
EXECUTE = SourceFrame("/venv/site-packages/tensorflow/python/eager/execute.py", 53, "quick_execute")
BACKWARD = SourceFrame("/venv/site-packages/torch/autograd/graph.py", 829, "_engine_run_backward")
DEBUGGER = SourceFrame("/usr/lib/python3.11/pdb.py", 412, "interaction")
EXIT = SourceFrame("/usr/lib/python3.11/threading.py", 1590, "_shutdown")


def frame(
    line: int, code: str = "", function: str = "train", loop: str = "", holds: tuple[str, ...] = ()
) -> SourceFrame:
    return SourceFrame("train.py", line, function, code, loop, holds)


def thread(
    tid: int, *frames: SourceFrame, wait: Wait | None = None, state: str = "S", cpu_s: float = 0.0
) -> ThreadSnapshot:
    return ThreadSnapshot(tid, f"thread-{tid}", state, cpu_s, frames, wait=wait)


def process(pid: int, *threads: ThreadSnapshot, parent: int = 1, state: str = "S") -> ProcessSnapshot:
    return ProcessSnapshot(pid, parent, "python", "python train.py", state, 0.0, pid, threads)


def busy(tid: int, *frames: SourceFrame) -> ThreadSnapshot:
    return thread(tid, *frames, state="R", cpu_s=-1.0)


def pipe(*holders: int, kind: WaitKind = WaitKind.READ, timed: bool = False, fd: int = 5) -> Wait:
    return Wait(kind, timed, (End(fd, "pipe", "pipe:[77]", holders=holders, held_by_itself=True),))


def looks(*processes: ProcessSnapshot, trainers: dict[int, int] | None = None) -> tuple[RecordedStacks, RecordedStacks]:
    """Two, three seconds apart; a thread with a processor time of -1 used all of them, with -2 a hundredth."""

    def at(moment: float) -> TreeSnapshot:
        used = {-1.0: moment - 100.0, -2.0: (moment - 100.0) / 100}
        return TreeSnapshot(
            moment,
            0.01,
            tuple(
                replace(one, threads=tuple(replace(t, cpu_s=used.get(t.cpu_s, t.cpu_s)) for t in one.threads))
                for one in processes
            ),
        )

    trains = {10: 50} if trainers is None else trainers
    first, second = (RecordedStacks(at(moment), 12.0, 10.0, 90.0, "train", trains) for moment in (100.0, 103.0))
    return first, second


def verdict(
    *processes: ProcessSnapshot, trainers: dict[int, int] | None = None, gone: dict[int, str] | None = None
) -> Verdict | None:
    return classify(*looks(*processes, trainers=trainers), gone or {})


A = thread(10, frame(3, "with b:", holds=("a",)), wait=LOCK)
B = thread(11, frame(9, "with a:", "save", holds=("b",)), BOOTSTRAP, wait=LOCK)
IDLE = thread(12, wait=LOCK)
PROGRESS_BAR = thread(13, THREADING, BOOTSTRAP, wait=TIMED_LOCK)


def test_a_cycle_of_locks_is_proven_and_named() -> None:
    found = verdict(process(10, A, B, IDLE, PROGRESS_BAR))
    assert found is not None
    assert (found.cause, found.soon, found.proven) == ("deadlock", True, True)
    assert found.evidence[0] == (
        "the main thread of process 10 holds a and wants b while thread thread-11 of process 10 holds b and wants a"
    )
    assert any("train.py:9 in save: with a:" in text for text in found.evidence)


FINDINGS = {
    "a worker forked while a lock was held": (
        (
            process(10, thread(10, LOADER, frame(40, "for x in loader:"), wait=pipe(20, kind=WaitKind.POLL, timed=True))),
            process(20, thread(20, frame(8, "with LOCK:", "__getitem__"), PROCESS, frame(40), wait=LOCK), parent=10),
        ),
        ("deadlock", True, "train.py:8"),
    ),
    "native code in a forked worker that waits for threads it has not": (
        (
            process(10, thread(10, LOADER, frame(40, "pool.map(f, x)"), wait=pipe(20))),
            process(20, thread(20, frame(8, "torch.cdist(a, b)", "work"), PROCESS, wait=LOCK), parent=10),
        ),
        ("deadlock", True, "train.py:8"),
    ),
    "a generator's lock, for which the main thread waits in native code": (
        (process(10, thread(10, EXECUTE, frame(40, "model.fit(data)"), wait=LOCK), thread(11, frame(8, "with lock:", "rows"), wait=LOCK)),),
        ("deadlock", True, "train.py:8"),
    ),
    "a loop in Python": (
        (process(10, busy(10, frame(5, "size *= 1", loop="while bad:"))),),
        ("infinite-loop", True, "train.py:5"),
    ),
    "a loop in a worker": (
        (
            process(10, thread(10, LOADER, frame(40), wait=pipe(20, kind=WaitKind.POLL, timed=True))),
            process(20, busy(20, frame(5, "pick()", "collate", loop="while True:"), PROCESS), parent=10),
        ),
        ("infinite-loop", True, "train.py:5"),
    ),
    "native code that keeps the interpreter, and computes": (
        (replace(process(10, busy(10, frame(5, "re.match(a, b)"))), gil_held=True),),
        ("infinite-loop", True, "train.py:5"),
    ),
    "native code that keeps the interpreter, and waits": (
        (replace(process(10, thread(10, frame(5, "native.take()"), wait=LOCK)), gil_held=True),),
        ("deadlock", True, "train.py:5"),
    ),
    "a stopped worker": (
        (
            process(10, thread(10, LOADER, frame(40, "for x in loader:"), wait=pipe(20, kind=WaitKind.POLL, timed=True))),
            process(20, thread(20, state="T"), parent=10, state="T"),
        ),
        ("worker-died", True, "train.py:40"),
    ),
    "a worker that ended and was not asked how": (
        (
            process(10, thread(10, CONNECTION, frame(40, "queue.get()"), wait=pipe())),
            process(20, parent=10, state="Z"),
        ),
        ("worker-died", True, "train.py:40"),
    ),
    "a device that does not answer": (
        (process(10, thread(10, frame(5, "np.load(path)"), state="D", wait=Wait(WaitKind.READ, False, (End(3, "file", "/mnt/a.npy", "nfs4 host:/x"),)))),),
        ("io-stall", True, "train.py:5"),
    ),
    "a device, seen from outside alone": (
        (process(10, thread(10, state="D", wait=Wait(WaitKind.WRITE, False, (End(3, "file", "/data/log", "ext4 /dev/sdb"),)))),),
        ("io-stall", True, "/data/log on ext4 /dev/sdb"),
    ),
    "a queue nobody reads, of a child that is joined": (
        (
            process(10, thread(10, frame(40, "child.join()"), wait=CHILD)),
            process(20, thread(20, THREADING, PROCESS, wait=LOCK), thread(21, CONNECTION, wait=pipe(10, kind=WaitKind.WRITE)), parent=10),
        ),
        ("deadlock", True, "train.py:40"),
    ),
    "a thread that keeps the script from ending": (
        (process(10, thread(10, EXIT, wait=LOCK), thread(11, THREADING, frame(8, "jobs.get()", "run"), BOOTSTRAP, wait=LOCK)),),
        ("deadlock", True, "train.py:8"),
    ),
    "a process that is waited for at the end, while another one has ended": (
        (
            process(10, thread(10, SourceFrame("/usr/lib/python3.11/multiprocessing/util.py", 360, "_exit_function"), wait=CHILD)),
            process(20, thread(20, CONNECTION, frame(8, "inbox.get()", "score"), PROCESS, wait=pipe()), parent=10),
            process(21, parent=10, state="Z"),
        ),
        ("deadlock", False, "train.py:8"),
    ),
    "a network file system": (
        (process(10, thread(10, frame(5, "open(path)"), wait=Wait(WaitKind.FILE, False, (End(-1, "file", "/mnt/a", "fuse.sshfs host:"),)))),),
        ("io-stall", False, "/mnt/a"),
    ),
    "a peer that does not answer": (
        (process(10, thread(10, frame(5, "connection.recv(9)"), wait=Wait(WaitKind.READ, False, (End(3, "socket", "tcp 1.2.3.4:5 to 6.7.8.9:10"),)))),),
        ("io-stall", False, "6.7.8.9:10"),
    ),
    "a pipe that nobody else can write to": (
        (process(10, thread(10, frame(5, "os.read(fd, 1)"), wait=pipe())),),
        ("io-stall", False, "train.py:5"),
    ),
    "native code whose threads only it knows": (
        (process(10, thread(10, EXECUTE, frame(5, "model.fit(data)"), wait=LOCK), IDLE),),
        ("deadlock", False, "train.py:5"),
    ),
    "a lock of several processes": ((process(10, thread(10, frame(5, "with shared:"), wait=SHARED)),), ("deadlock", False, "train.py:5")),
    "a sleep": ((process(10, thread(10, frame(5, "time.sleep(9)"), wait=SLEEP)),), ("deadlock", False, "train.py:5")),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDINGS)
def test_each_kind_is_told_with_the_place_in_the_script(name: str) -> None:
    processes, (cause, soon, place) = FINDINGS[name]
    found = verdict(*processes)
    assert found is not None
    assert (found.cause, found.soon) == (cause, soon)
    assert place in " ".join(found.evidence)


def test_a_loop_whose_condition_changes_may_just_take_long() -> None:
    def at(turns: int) -> ProcessSnapshot:
        return process(10, busy(10, replace(frame(5, "visit(node)", loop="while todo:"), condition=(f"todo={turns}",))))

    (before, _), (_, after) = looks(at(900)), looks(at(400))
    moves, stands = classify(before, after, {}), classify(*looks(at(400)), {})
    assert moves is not None
    assert stands is not None
    assert ((moves.cause, moves.soon), stands.soon) == (("infinite-loop", False), True)


SILENT = {
    "a loop that looks at the clock, or computes for long": (process(10, busy(10, frame(5, "work()"))),),
    "native threads that compute": (process(10, thread(10, EXECUTE, frame(5, "model.evaluate(x)"), wait=LOCK), busy(11)),),
    "a child that computes": (
        process(10, thread(10, frame(5, "subprocess.run(command)"), wait=CHILD)),
        process(20, busy(20, frame(2)), parent=10),
    ),
    "a debugger": (process(10, thread(10, DEBUGGER, frame(5), wait=pipe())),),
    "a question at the terminal": (
        process(10, thread(10, frame(5, "input()"), wait=Wait(WaitKind.READ, False, (End(0, "terminal", "/dev/pts/1"),)))),
    ),
    "standard input from elsewhere": (process(10, thread(10, frame(5, "input()"), wait=pipe(7, fd=0))),),
    "a rank that validates while the other waits": (
        process(10, thread(10, BACKWARD, frame(5, "loss.backward()"), wait=LOCK)),
        process(20, busy(20, frame(9, "evaluate()"))),
    ),
    "a thread that could not be asked": (
        process(10, thread(10, EXECUTE, frame(5, "model.fit(data)"), wait=LOCK), replace(thread(11, wait=SLEEP), missing=RUNS)),
    ),
    "a connection to a peer that answers again and again": (
        process(10, replace(thread(10, frame(5, "ask(peer)"), wait=Wait(WaitKind.READ, False, (End(3, "socket", "tcp"),))), cpu_s=-2.0)),
    ),
    "no Python at all": (process(10, thread(10, wait=SLEEP)),),
}  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_what_works_or_waits_for_a_person_is_left_alone(name: str) -> None:
    assert verdict(*SILENT[name], trainers={10: 50, 20: 50} if "rank" in name else None) is None


def test_native_code_that_waits_for_a_peer_may_bring_what_is_waited_for() -> None:
    gets = thread(10, THREADING, frame(3, "answers.get()"), wait=LOCK)
    peer = thread(14, wait=Wait(WaitKind.POLL, True))
    soon = {bool(others): verdict(process(10, gets, *others)) for others in ((), (peer,))}
    assert {fed: found is not None and found.soon for fed, found in soon.items()} == {False: True, True: False}
    locked = verdict(process(10, A, B, peer))
    assert locked is not None and locked.proven


def test_native_code_of_the_only_thread_waits_for_a_lock_that_nobody_is_there_to_release() -> None:
    waits = thread(10, frame(5, "native.take()"), wait=LOCK)
    alone, beside_another = verdict(process(10, waits)), verdict(process(10, waits, IDLE))
    assert alone is not None and (alone.cause, alone.soon, alone.proven) == ("deadlock", True, True)
    assert beside_another is not None and not beside_another.proven


def test_a_pipe_that_somebody_else_reads_is_no_deadlock() -> None:
    joins = thread(10, frame(40, "child.join()"), wait=CHILD)
    reads = thread(11, frame(8, "handle(line)", "read_lines"), BOOTSTRAP, wait=SLEEP)
    writes = thread(20, frame(3, "print(row)", "main"), wait=pipe(10, kind=WaitKind.WRITE))
    through_tee = thread(20, frame(3, "print(row)", "main"), wait=pipe(10, 30, kind=WaitKind.WRITE))
    told = [
        verdict(process(10, joins), process(20, writes, parent=10)),
        verdict(process(10, joins, reads), process(20, writes, parent=10)),
        verdict(process(10, joins), process(20, through_tee, parent=10)),
    ]
    assert [found is not None and found.proven for found in told] == [True, False, False]


def test_a_thread_that_sleeps_may_yet_release_the_lock() -> None:
    waits = thread(10, frame(3, "with a:"), wait=LOCK)
    sleeps = thread(11, frame(9, "time.sleep(30)", "rebuild", holds=("a",)), BOOTSTRAP, wait=SLEEP)
    found = verdict(process(10, waits, sleeps))
    assert found is not None
    assert (found.soon, found.proven) == (False, False)


# -- how long the silence must last, and how the run ended


def window(
    silent_s: float,
    *events: Event,
    steps_at: float = 80.0,
    processes: tuple[ProcessSnapshot, ...] = (process(10, A, B),),
) -> Window:
    taken = [one.event(one.snapshot.at) for one in looks(*processes)]
    silent = [Sample("job.silent_s", silent_s - back, 104.0 - back) for back in (2.0, 1.0, 0.0)]
    steps = [Sample("train.steps_count", 50.0, steps_at)]
    return Window([*taken, *events], {"job.silent_s": silent, "train.steps_count": steps})


def found_while_running(silent_s: float, *processes: ProcessSnapshot) -> Finding | None:
    return hang.find(window(silent_s, processes=processes))


def test_what_cannot_end_is_told_soon_and_what_may_is_told_late() -> None:
    sleeps = process(10, thread(10, frame(5, "time.sleep(9)"), wait=SLEEP))
    assert found_while_running(9.0, process(10, A, B)) is None
    soon, late = found_while_running(14.0, process(10, A, B)), found_while_running(91.0, sleeps)
    assert soon is not None and soon.standstill is not None and not soon.standstill.proven
    assert found_while_running(80.0, sleeps) is None
    assert late is not None and late.cause == "deadlock"


def test_it_is_proven_once_it_was_seen_twice() -> None:
    taken = [
        replace(one.snapshot, at=one.snapshot.at + later) for later in (0.0, 10.0) for one in looks(process(10, A, B))
    ]
    events = [RecordedStacks(one, 12.0, 10.0, 90.0, "train", {10: 50}).event(one.at) for one in taken]
    found = hang.find(Window(events, {"job.silent_s": [Sample("job.silent_s", 25.0, 114.0)]}))
    assert found is not None and found.standstill is not None and found.standstill.proven


def test_before_it_trains_a_busy_loop_may_be_the_preparation_of_data() -> None:
    loop = looks(process(10, busy(10, frame(5, loop="while rows:"))), trainers={})
    silent = {"job.silent_s": [Sample("job.silent_s", 95.0, 104.0)]}
    assert hang.find(Window([one.event(one.snapshot.at) for one in loop], silent)) is None


@pytest.mark.parametrize(("written", "told"), [(1e4, True), (2e8, False)])
def test_a_large_file_that_is_synced_is_no_dead_device(written: float, told: bool) -> None:
    taken = looks(process(10, thread(10, frame(5, "os.fsync(fd)"), state="D", wait=Wait(WaitKind.FILE, False))))
    disk = [Sample("disk.written_bytes", value, at) for value, at in ((0.0, 85.0), (written, 104.0))]
    series = {"job.silent_s": [Sample("job.silent_s", 15.0, 104.0)], "disk.written_bytes": disk}
    assert (hang.find(Window([one.event(one.snapshot.at) for one in taken], series)) is not None) == told


def test_before_it_trains_only_what_is_certain_and_files_are_told() -> None:
    file = Wait(WaitKind.FILE, False, (End(-1, "file", "/mnt/a"),))
    told = {}
    for name, one in {
        "file": thread(10, frame(5), wait=file),
        "sleep": thread(10, frame(5), wait=SLEEP),
        "lock": A,
    }.items():
        taken = [stacks.event(stacks.snapshot.at) for stacks in looks(process(10, one), trainers={})]
        told[name] = hang.find(Window(taken, {"job.silent_s": [Sample("job.silent_s", 95.0, 104.0)]})) is not None
    assert told == {"file": True, "sleep": False, "lock": True}


def test_stacks_of_an_earlier_silence_say_nothing_of_this_one() -> None:
    taken = [one.event(one.snapshot.at) for one in looks(process(10, A, B))]
    silent = {"job.silent_s": [Sample("job.silent_s", 15.0, 140.0)]}
    assert hang.find(Window(taken, silent)) is None
