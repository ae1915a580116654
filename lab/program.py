"""Runs one program of a case for real, under its limits, with Holdfast in front of it or bare."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import psutil

from . import footprint
from .case import FRAMEWORKS, Case, Limits, seeded_line
from .stage import CannotStage, Stage

TIMEOUT_S = 300.0  # no measure of anything: only so that a program which hangs does not hold up the rest
LEFTOVERS_GRACE_S = 20.0  # a loaded machine takes its time; one that leaves nothing behind is not waited for
SOURCE = Path(__file__).parent.parent / "src"
NOT_COPIED = {"expect.toml", "healthy.py", "__pycache__"}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program did, and what `holdfast why` says about it. `exit_code` is None when it had to be stopped."""

    exit_code: int | None
    seconds: float
    stdout: str = ""
    stderr: str = ""
    answer: dict[str, Any] | None = None
    trouble: str = ""
    why_seconds: float | None = None  # how long the question took
    warned_after: float | None = None  # seconds into the run, where Holdfast said a word during it


def run(case: Case, *, healthy: bool, bare: bool, keep: bool = False, seed: int | None = None) -> Ran:
    """Raises CannotStage where this machine cannot run the case. A seed chooses where the fault strikes."""
    _require(case)
    limits = footprint.resolved(case.limits, case.framework, _environment())
    with _scratch(case, healthy, keep, seed) as scratch, Stage(limits, scratch.name) as stage:
        command = [sys.executable if word == "python" else word for word in case.command]
        if not bare:
            command = [*_holdfast(), "run", "--dir", ".holdfast", "--policy", case.policy, "--", *command]
        ran = _watch(stage.wrap(command), scratch, stage, _happenings(case, healthy, scratch, seed))
        if keep:
            (scratch / "stdout.txt").write_text(ran.stdout)
            (scratch / "stderr.txt").write_text(ran.stderr)
        return ran if bare else _ask_why(ran, scratch)


def _require(case: Case) -> None:
    for module in FRAMEWORKS[case.framework]:
        if importlib.util.find_spec(module) is None:
            raise CannotStage(f"{module} is not installed")
    for tool in case.needs:
        if shutil.which(tool) is None:
            raise CannotStage(f"there is no {tool} here")


@contextmanager
def _scratch(case: Case, healthy: bool, keep: bool, seed: int | None) -> Iterator[Path]:
    """A folder of its own for one run. Both twins are called train.py there, so that only the fault differs."""
    # The name says nothing: it shows in tracebacks and in the kernel log, and the answer must not be read off there.
    scratch = Path(tempfile.mkdtemp(prefix="job-")).resolve()
    try:
        for source in case.folder.iterdir():
            if source.name not in NOT_COPIED:
                shutil.copy(source, scratch / source.name)
        if healthy:
            shutil.copy(case.healthy_program, scratch / "train.py")
        if seed is not None:
            _place_fault(case, scratch / "train.py", seed)
        yield scratch
    finally:
        if keep:
            print(f"{case.name} {'healthy' if healthy else 'failing'} is kept in {scratch}", file=sys.stderr)
        else:
            shutil.rmtree(scratch, ignore_errors=True)


def _place_fault(case: Case, program: Path, seed: int) -> None:
    """Writes the seed's choice into the constants that say at which step or in which worker the fault strikes."""
    text = program.read_text()
    for name, (low, high) in case.seeded.items():
        chosen = random.Random(f"{case.name} {name} {seed}").randint(low, high)
        text = seeded_line(name).sub(rf"\g<1>{chosen}", text)
    program.write_text(text)


def _holdfast() -> list[str]:
    return [sys.executable, "-m", "holdfast"]


def _environment() -> dict[str, str]:
    """Unbuffered, so that a signal can be sent at a line that was printed."""
    own_tools = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": own_tools + os.pathsep + os.environ.get("PATH", os.defpath),
        "PYTHONUNBUFFERED": "1",
        "KERAS_BACKEND": "tensorflow",
    }
    # Many of them run side by side; a thread for each core in each of them would only measure the crowd. On few cores
    # even two wait for each other without letting go: 7 s of work were not done after 200 s on a busy machine with 2.
    environment.setdefault("OMP_NUM_THREADS", "2" if len(os.sched_getaffinity(0)) >= 8 else "1")
    environment.pop("HOLDFAST_DIR", None)
    if importlib.util.find_spec("holdfast") is None:
        environment["PYTHONPATH"] = str(SOURCE)
    return environment


class _Stream:
    """Collects what comes out of a pipe while the program runs."""

    def __init__(self, pipe: IO[bytes], mark: bytes = b"") -> None:
        self.marked_at: float | None = None  # when the mark first came by
        self._mark = mark
        self._pieces: list[bytes] = []
        self._thread = threading.Thread(target=self._collect, args=(pipe,), daemon=True)
        self._thread.start()

    def _collect(self, pipe: IO[bytes]) -> None:
        while piece := os.read(pipe.fileno(), 65536):
            self._pieces.append(piece)
            if self._mark and self.marked_at is None and self._mark in b"".join(self._pieces[-2:]):
                self.marked_at = time.monotonic()

    def text(self) -> str:
        return b"".join(self._pieces).decode(errors="replace")

    def lines(self) -> str:
        """The whole ones: unbuffered, the end of a line is written after it."""
        return self.text().rpartition("\n")[0]

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)


@dataclass(slots=True)
class _Happening:
    """Something done from outside once a text was printed; it is given the process that was started."""

    after_output: str
    do: Callable[[int], None]
    done: bool = False


def _happenings(case: Case, healthy: bool, scratch: Path, seed: int | None) -> list[_Happening]:
    happenings = []
    if (neighbour := case.neighbour) is not None:
        name = f"{scratch.name}-other"
        happenings.append(_Happening(neighbour.after_output, lambda _: _exhaust_neighbour(neighbour.memory, name)))
    if (ending := case.ending) is not None and not healthy:

        def send(started: int) -> None:
            receiver = started if ending.to == "holdfast" else _script_in(scratch)
            with suppress(ProcessLookupError):  # it has just ended by itself, which is told
                if receiver is not None:
                    os.kill(receiver, ending.signal)

        moments = ending.after_output
        moment = moments[0] if seed is None else random.Random(f"{case.name} ending {seed}").choice(moments)
        happenings.append(_Happening(moment, send))
    return happenings


def _exhaust_neighbour(memory: int, name: str) -> None:
    greedy = [sys.executable, "-c", f"bytearray({4 * memory})"]
    with Stage(Limits(memory=memory), name) as stage:
        subprocess.run(stage.wrap(greedy), cwd="/", check=False)


def _watch(command: list[str], scratch: Path, stage: Stage, happenings: list[_Happening]) -> Ran:
    started = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=scratch,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        stdout, stderr = _Stream(process.stdout), _Stream(process.stderr, mark=b"holdfast:")
        try:
            finished = _wait(process, stdout, happenings)
        except BaseException:  # what was to happen cannot be made to here: the program may wait for it for ever
            _stop_leftovers(scratch, stage, grace=0)
            raise
        seconds = time.monotonic() - started
        left = _stop_leftovers(scratch, stage, grace=LEFTOVERS_GRACE_S if finished else 0)
        process.wait()
        for stream in (stdout, stderr):
            stream.wait(LEFTOVERS_GRACE_S)
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    trouble = _trouble(finished, left, happenings)
    warned = None if stderr.marked_at is None else stderr.marked_at - started
    return Ran(code if finished else None, seconds, stdout.text(), stderr.text(), None, trouble, warned_after=warned)


def _trouble(finished: bool, left: list[str], happenings: list[_Happening]) -> str:
    if not finished:
        return f"still running after {TIMEOUT_S:.0f} s"
    if left:
        return f"left running: {', '.join(left)}"
    missed = [happening.after_output for happening in happenings if not happening.done]
    return f"ended before it printed {', '.join(map(repr, missed))}" if missed else ""


def _wait(process: subprocess.Popen[bytes], stdout: _Stream, happenings: list[_Happening]) -> bool:
    """Until the program has ended, doing to it what the case asks for on the way; False when it takes too long."""
    deadline = time.monotonic() + TIMEOUT_S
    while process.poll() is None:
        if time.monotonic() > deadline:
            return False
        for happening in happenings:
            if not happening.done and happening.after_output in stdout.lines():
                happening.done = True
                happening.do(process.pid)
        time.sleep(0.02)
    return True


def _script_in(scratch: Path) -> int | None:
    """The oldest process in the scratch folder that runs train.py and is no part of Holdfast."""
    scripts = [
        process
        for process in _processes_in(scratch)
        if "train.py" in process.info["cmdline"] and "holdfast" not in process.info["cmdline"]
    ]
    return min(scripts, key=lambda process: process.info["create_time"]).pid if scripts else None


def _processes_in(scratch: Path) -> list[psutil.Process]:
    found = psutil.process_iter(["cwd", "cmdline", "create_time", "name"])
    return [process for process in found if process.info["cwd"] == str(scratch)]


def _stop_leftovers(scratch: Path, stage: Stage, grace: float) -> list[str]:
    """Ends what the program left behind, after a moment to end by itself; gives the names of what had to be ended."""

    def left() -> set[psutil.Process]:
        inside = set()
        for pid in stage.members():
            with suppress(psutil.Error):  # it may end while it is looked at
                inside.add(psutil.Process(pid))
        return {*_processes_in(scratch), *inside}

    deadline = time.monotonic() + grace
    while left() and time.monotonic() < deadline:
        time.sleep(0.1)
    ended = []
    for process in left():
        with suppress(psutil.Error):
            ended.append(process.name())
            process.send_signal(signal.SIGKILL)
    return ended


def _ask_why(ran: Ran, scratch: Path) -> Ran:
    """Asked outside the limits, as a person would afterwards."""
    started = time.monotonic()
    asked = subprocess.run(
        [*_holdfast(), "why", "--dir", ".holdfast", "--json"],
        cwd=scratch,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    seconds = time.monotonic() - started
    try:
        answer = json.loads(asked.stdout)
    except ValueError:
        complaint = (asked.stderr.strip() or asked.stdout.strip() or "nothing").splitlines()[-1]
        return replace(ran, trouble=f"why exited {asked.returncode} and said: {complaint}", why_seconds=seconds)
    return replace(ran, answer=answer, why_seconds=seconds)
