"""Stacks for people: equal ones together, the odd one first, the script's own frames marked, libraries folded."""

from __future__ import annotations

from holdfast.stack_dumps import Frame
from holdfast.stack_snapshots import End, ProcessSnapshot, ThreadSnapshot, TreeSnapshot, Wait, WaitKind
from holdfast.views.stacks_text import as_text, groups

OWN = Frame("train.py", 12, "collate", "rows = pack(batch)")
LIBRARY = tuple(Frame(f"/x/site-packages/torch/{name}.py", 5, name) for name in ("fetch", "worker", "loop"))
NATIVE = (Frame("/usr/lib/libc.so.6", 0, "futex_wait"), Frame("/x/torch/lib/libtorch.so", 0, "at::parallel"))


def thread(tid: int, *frames: Frame, name: str = "python", state: str = "S", **more: object) -> ThreadSnapshot:
    return ThreadSnapshot(tid, name, state, 0.0, frames, **more)  # type: ignore[arg-type]


def process(
    pid: int, *threads: ThreadSnapshot, parent: int = 1, state: str = "S", missing: str = ""
) -> ProcessSnapshot:
    return ProcessSnapshot(pid, parent, "python", "python train.py", state, 0.0, 0, threads, missing)


def text(*processes: ProcessSnapshot, fold: bool = True, colour: bool = False) -> str:
    return as_text("some-run", TreeSnapshot(0.0, 0.004, processes), ["a note"], colour, fold)


def test_the_odd_one_comes_before_those_that_stand_together() -> None:
    workers = [process(pid, thread(pid, *LIBRARY), parent=10) for pid in (11, 12, 13)]
    odd = process(14, thread(14, OWN, *LIBRARY), parent=10)
    found = groups(TreeSnapshot(0.0, 0.0, (*workers, odd)))
    assert [[process.pid for process, _ in group.threads] for group in found] == [[14], [11, 12, 13]]
    told = text(*workers, odd)
    assert "3 threads at the same place: main thread of 11, main thread of 12, main thread of 13: waiting" in told


def test_of_two_that_stand_alone_the_one_in_the_users_code_comes_first() -> None:
    found = groups(TreeSnapshot(0.0, 0.0, (process(1, thread(1, *LIBRARY), thread(2, OWN)),)))
    assert [group.frames[0] for group in found] == [OWN, LIBRARY[0]]


def test_own_frames_are_marked_with_their_code_and_libraries_folded() -> None:
    told = text(process(1, thread(1, *LIBRARY, OWN, LIBRARY[0])))
    assert told.splitlines()[-3:] == [
        "    torch/fetch.py:5 in fetch … and 2 more of libraries",
        "  > train.py:12 in collate    rows = pack(batch)",
        "    torch/fetch.py:5 in fetch",
    ]


def test_native_frames_are_no_frames_of_the_script_and_are_all_shown_where_asked_for() -> None:
    told = text(process(1, thread(1, *NATIVE, OWN)), fold=False)
    assert told.splitlines()[-3:] == [
        "    futex_wait (lib/libc.so.6)",
        "    at::parallel (lib/libtorch.so)",
        "  > train.py:12 in collate    rows = pack(batch)",
    ]


def test_it_is_told_what_a_thread_waits_for() -> None:
    on = Wait(WaitKind.READ, None, (End(5, "pipe", "pipe:[99]"),))
    told = text(process(1, thread(1, OWN, wait=on), thread(2, *LIBRARY, name="feeder", wait=Wait(WaitKind.SLEEP))))
    assert "main thread: waits (read) on pipe pipe:[99]" in told
    assert "thread feeder (2): sleeps" in told


def test_processes_stand_below_their_parents_with_what_is_wrong_with_them() -> None:
    told = text(
        process(10, thread(10, OWN)),
        process(11, parent=10, state="T", missing="it is stopped"),
        process(12, parent=11, state="Z", missing="it has ended"),
        process(13, thread(13), parent=10, missing="Holdfast is not in it"),
    )
    assert "  10 python train.py: waiting\n    11 python train.py: stopped\n      12 python train.py: dead\n" in told
    assert "    13 python train.py: waiting; Holdfast is not in it" in told


def test_threads_without_a_stack_are_counted_or_named_with_the_reason() -> None:
    silent = thread(3, name="reader", state="D", missing="in state D it answers no signal")
    told = text(process(1, thread(1, OWN), thread(2), thread(4), silent))
    assert told.endswith(
        "no stack\n  thread reader (3): in state D it answers no signal\n  2 threads of 1 run no Python"
    )


def test_what_a_script_calls_its_threads_moves_no_cursor() -> None:
    told = text(process(1, thread(1, OWN), thread(2, *LIBRARY, name="\033[2Jevil")))
    assert "\033" not in told and "evil" in told
    assert "\033[1m  > train.py:12" in text(process(1, thread(1, OWN)), colour=True)
