"""Where every thread of a job stands: asked of real processes, without rights and whatever state they are in."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import stack_snapshots
from holdfast.probes.blocked_on import call_of, names_of
from holdfast.probes.descriptors import address_of, mounts_in
from holdfast.stack_snapshots import ThreadSnapshot, TreeSnapshot, WaitKind
from holdfast.supervisor import tree_stacks

BOOTSTRAP = Path(tree_stacks.__file__).parents[1] / "inside" / "bootstrap"
ZOO = """
import ctypes, multiprocessing, os, queue, socket, sys, threading, time

held = threading.Lock()
held.acquire()
os.mkfifo("named")

def lock():
    with held:
        pass

def timed():
    threading.Event().wait(1000)

def pipe():
    end, other = os.pipe()
    os.read(end, 1)

def named_pipe():
    open("named")

def peer():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).recv(1)

def between_processes():
    shared = multiprocessing.Lock()
    shared.acquire()
    shared.acquire()

def busy():
    turns, last = 0, None
    while turns >= 0 and last is None:
        turns += 1
        sorted(range(9), key=lambda one: -one)

def worker():
    time.sleep(1000)

child = multiprocessing.get_context("fork").Process(target=worker)
child.start()
for one in (lock, timed, pipe, named_pipe, peer, between_processes, busy):
    threading.Thread(target=one, daemon=True, name=one.__name__).start()
time.sleep(0.5)
print("ready", flush=True)
if sys.argv[1] != "python":
    library = ctypes.CDLL(None) if sys.argv[1] == "native" else ctypes.PyDLL(None)
    mutex = ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
child.join()
"""


@pytest.fixture(scope="module", params=["python", "native", "gil"])
def snapshot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TreeSnapshot]:
    folder = tmp_path_factory.mktemp("zoo")
    (folder / "zoo.py").write_text(ZOO)
    environment = {**os.environ, "HOLDFAST_CHANNEL": str(folder), "PYTHONPATH": str(BOOTSTRAP)}
    command = [sys.executable, "zoo.py", request.param]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as zoo:
        assert zoo.stdout is not None and zoo.stdout.readline() == "ready\n"
        taken = tree_stacks.with_code(tree_stacks.take([zoo.pid, *tree_stacks.below(zoo.pid)]))
        for pid in (*tree_stacks.below(zoo.pid), zoo.pid):
            os.kill(pid, signal.SIGKILL)
    yield taken


def thread(snapshot: TreeSnapshot, function: str) -> ThreadSnapshot:
    return next(
        one
        for process in snapshot.processes
        for one in process.threads
        if any(frame.function == function for frame in one.frames)
    )


def test_waiting_threads_say_what_they_wait_for(snapshot: TreeSnapshot) -> None:
    waits = {name: thread(snapshot, name).wait for name in ("lock", "timed", "pipe", "named_pipe", "between_processes")}
    kinds = {name: (wait.kind, wait.timed) for name, wait in waits.items() if wait is not None}
    assert kinds == {
        "lock": (WaitKind.LOCK, False),
        "timed": (WaitKind.LOCK, True),
        "pipe": (WaitKind.READ, False),
        "named_pipe": (WaitKind.FILE, False),
        "between_processes": (WaitKind.SHARED_LOCK, False),
    }
    end = waits["pipe"] and waits["pipe"].ends[0]
    assert end and (end.what, end.holders, end.held_by_itself) == ("pipe", (), True)
    end = waits["named_pipe"] and waits["named_pipe"].ends[0]
    assert end and (end.what, end.holders) == ("pipe", ())
    peer = thread(snapshot, "peer").wait
    assert peer is not None and peer.ends[0].text.startswith("tcp 127.0.0.1:")


def test_the_lines_of_the_script_are_there_and_a_forked_worker_answers_for_itself(snapshot: TreeSnapshot) -> None:
    waiting = thread(snapshot, "lock").frames[0]
    assert (waiting.file.rsplit("/", 1)[-1], waiting.code) == ("zoo.py", "with held:")
    worker = thread(snapshot, "worker")
    assert worker.tid == snapshot.processes[1].pid and worker.frames[0].code == "time.sleep(1000)"
    assert worker.wait is not None and worker.wait.kind is WaitKind.SLEEP


def test_a_thread_that_runs_python_is_asked_only_where_somebody_can_answer_for_it(snapshot: TreeSnapshot) -> None:
    zoo = snapshot.processes[0]
    busiest = max(zoo.threads, key=lambda one: one.cpu_s)
    by_python = zoo.command.endswith("python")
    found = [frame for frame in busiest.frames if frame.file.endswith("zoo.py")]
    assert [frame.function for frame in found][-1:] == ["busy"] * by_python
    # What its loop looks at, as numbers: the values themselves are nobody's business.
    assert [re.sub("[0-9]+", "N", " ".join(f.condition)) for f in found if f.loop][-1:] == [
        "last=N turns=N"
    ] * by_python
    assert busiest.missing == ("" if by_python else "it runs, and a thread that runs Python is not asked")


def test_it_is_read_back_as_it_was(snapshot: TreeSnapshot) -> None:
    assert stack_snapshots.of_data(json.loads(json.dumps(snapshot.as_data()))) == snapshot


def test_a_program_without_holdfast_is_looked_at_and_never_signalled() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        time.sleep(0.1)
        process = tree_stacks.take([sleeper.pid]).processes[0]
        assert (process.missing, process.threads[0].wait and process.threads[0].wait.kind) == (
            "Holdfast is not in it",
            WaitKind.SLEEP,
        )
        os.kill(sleeper.pid, signal.SIGSTOP)
        time.sleep(0.1)
        assert tree_stacks.take([sleeper.pid]).processes[0].missing == "it is stopped"
        assert sleeper.poll() is None
        sleeper.kill()


def test_what_the_kernel_prints_is_read() -> None:
    assert names_of("x86_64")[202] == names_of("aarch64")[98] == "futex"
    assert call_of("running").name == "running"
    assert call_of("-1 0x7ffe 0x55aa").arguments == ()
    assert address_of("0100007F:1F90") == "127.0.0.1:8080"
    assert address_of("0000000000000000FFFF00000100007F:0016") == "127.0.0.1:22"
    line = "36 35 98:0 / /mnt/my\\040data rw,noatime master:1 - nfs4 server:/export rw\n"
    assert mounts_in(line) == [("/mnt/my data", "nfs4 server:/export")]


MANY = """
import threading

gate = threading.Lock()
gate.acquire()

def deep(left, name):
    if left:
        deep(left - 1, name)
    else:
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
            comm.write(name)
        gate.acquire()

for depth in range(20, 60):
    threading.Thread(target=deep, args=(depth, f"deep-{depth}"), daemon=True).start()
print("ready", flush=True)
gate.acquire()
"""


def test_each_of_many_threads_gets_its_own_stack_and_none_is_missed(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(BOOTSTRAP), "HOLDFAST_CHANNEL": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", MANY], env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.3)
            for _ in range(8):
                threads = tree_stacks.take([process.pid]).processes[0].threads
                depths = {one.name: sum(frame.function == "deep" for frame in one.frames) for one in threads[1:]}
                assert depths == {f"deep-{depth}": depth + 1 for depth in range(20, 60)}
        finally:
            process.kill()
