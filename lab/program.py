"""Runs one program of a case for real, under its limits, with Holdfast in front of it or bare."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import psutil

from . import footprint, frozen_files
from .case import FRAMEWORKS, Case, seeded_line
from .happenings import Happening, Means, happenings, processes_in
from .stage import CannotStage, Stage
from .standstill import Standstill

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
    answer_at_standstill: dict[str, Any] | None = None  # what `why` said while the program stood still
    stalled_after: float | None = None  # how long after the beginning of that


def run(case: Case, *, healthy: bool, bare: bool, keep: bool = False, seed: int | None = None) -> Ran:
    """Raises CannotStage where this machine cannot run the case. A seed chooses where the fault strikes."""
    _require(case)
    limits = footprint.resolved(case.limits, case.framework, _environment())
    with _scratch(case, healthy, keep, seed) as scratch, Stage(limits, scratch.name) as stage, ExitStack() as prepared:
        command = list(case.command)
        if not bare:
            options = ["--dir", ".holdfast", "--policy", case.policy, *case.options]
            command = [*_holdfast(), "run", *options, "--", *command]
        means = _prepare(case, Means(scratch, bare, seed), prepared)
        standstill = _standstill(case, healthy, bare, scratch)
        ran = _watch(stage.wrap(command), stage, means, happenings(case, healthy, means), standstill)
        if keep:
            (scratch / "stdout.txt").write_text(ran.stdout)
            (scratch / "stderr.txt").write_text(ran.stderr)
        return ran if bare else _ask_why(ran, scratch)


def _prepare(case: Case, means: Means, prepared: ExitStack) -> Means:
    if case.typed is not None:
        terminal, stdin = pty.openpty()
        prepared.callback(os.close, terminal)
        prepared.callback(os.close, stdin)
        means = replace(means, terminal=terminal, stdin=stdin)
    if case.frozen_files is not None:
        server = prepared.enter_context(frozen_files.mounted(means.scratch / case.frozen_files.path))
        means = replace(means, freeze=partial(frozen_files.freeze, server), let_go=server.kill)
    return means


def _standstill(case: Case, healthy: bool, bare: bool, scratch: Path) -> Standstill | None:
    if case.hang is None or healthy:
        return None
    return Standstill(case.hang, None if bare else lambda: _why(scratch)[0])


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


def _only_closing_words(stderr: str) -> bool:
    """Three lines at the end tell of a run that is over."""
    said = [line for line in stderr.splitlines() if line.startswith("holdfast:")]
    return len(said) == 3 and said[-1].startswith("holdfast: for more:")


class _Stream:
    """Collects what comes out of a pipe while the program runs."""

    def __init__(self, pipe: IO[bytes], mark: bytes = b"") -> None:
        self.marked_at: float | None = None  # when the mark first came by
        self.last_marked_at: float | None = None
        self._mark = mark
        self._pieces: list[bytes] = []
        self._thread = threading.Thread(target=self._collect, args=(pipe,), daemon=True)
        self._thread.start()

    def _collect(self, pipe: IO[bytes]) -> None:
        while piece := os.read(pipe.fileno(), 65536):
            self._pieces.append(piece)
            if self._mark and self._mark in b"".join(self._pieces[-2:]):
                self.last_marked_at = time.monotonic()
                self.marked_at = self.marked_at or self.last_marked_at

    def text(self) -> str:
        return b"".join(self._pieces).decode(errors="replace")

    def lines(self) -> str:
        """The whole ones: unbuffered, the end of a line is written after it."""
        return self.text().rpartition("\n")[0]

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)


def _watch(
    command: list[str], stage: Stage, means: Means, to_do: list[Happening], standstill: Standstill | None
) -> Ran:
    started = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=means.scratch,
        env=_environment(),
        stdin=means.stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        stdout, stderr = _Stream(process.stdout), _Stream(process.stderr, mark=b"holdfast:")
        try:
            finished = _wait(process, stdout, stderr, to_do, standstill)
        except BaseException:  # what was to happen cannot be made to here: the program may wait for it for ever
            _stop_leftovers(means.scratch, stage, grace=0)
            raise
        seconds = time.monotonic() - started
        if means.let_go is not None:
            means.let_go()
        patient = finished and not (means.bare and standstill is not None)
        left = _stop_leftovers(means.scratch, stage, grace=LEFTOVERS_GRACE_S if patient else 0)
        process.wait()
        for stream in (stdout, stderr):
            stream.wait(LEFTOVERS_GRACE_S)
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    trouble = _trouble(finished, left if patient else [], to_do)
    during = stderr.marked_at is not None and not _only_closing_words(stderr.text())
    warned = stderr.marked_at - started if during and stderr.marked_at is not None else None
    ran = Ran(code if finished else None, seconds, stdout.text(), stderr.text(), None, trouble, warned_after=warned)
    if standstill is None:
        return ran
    trouble = "; ".join(filter(None, (standstill.trouble(), trouble)))
    return replace(ran, trouble=trouble, answer_at_standstill=standstill.answer, stalled_after=standstill.stalled_after)


def _trouble(finished: bool, left: list[str], to_do: list[Happening]) -> str:
    if not finished:
        return f"still running after {TIMEOUT_S:.0f} s"
    if left:
        return f"left running: {', '.join(left)}"
    missed = [happening.after_output for happening in to_do if not happening.done]
    return f"ended before it printed {', '.join(map(repr, missed))}" if missed else ""


def _wait(
    process: subprocess.Popen[bytes],
    stdout: _Stream,
    stderr: _Stream,
    to_do: list[Happening],
    standstill: Standstill | None,
) -> bool:
    """Until the program has ended, doing to it what the case asks for on the way; False when it takes too long."""
    deadline = time.monotonic() + TIMEOUT_S
    while process.poll() is None:
        if time.monotonic() > deadline:
            return False
        for happening in to_do:
            if not happening.done and happening.after_output in stdout.lines():
                happening.done = True
                happening.do(process.pid)
        if standstill is not None:
            standstill.look(process.pid, stdout.lines(), stderr.last_marked_at)
        time.sleep(0.02)
    return True


def _stop_leftovers(scratch: Path, stage: Stage, grace: float) -> list[str]:
    """Ends what the program left behind, after a moment to end by itself; gives the names of what had to be ended."""

    def left() -> set[psutil.Process]:
        inside = set()
        for pid in stage.members():
            with suppress(psutil.Error):  # it may end while it is looked at
                inside.add(psutil.Process(pid))
        return {*processes_in(scratch), *inside}

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
    answer, complaint = _why(scratch)
    seconds = time.monotonic() - started
    if answer is None:
        trouble = "; ".join(filter(None, (ran.trouble, complaint)))
        return replace(ran, trouble=trouble, why_seconds=seconds)
    return replace(ran, answer=answer, why_seconds=seconds)


def _why(scratch: Path) -> tuple[dict[str, Any] | None, str]:
    """The answer, or why there is none."""
    asked = subprocess.run(
        [*_holdfast(), "why", "--dir", ".holdfast", "--json"],
        cwd=scratch,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    try:
        return json.loads(asked.stdout), ""
    except ValueError:
        said = (asked.stderr.strip() or asked.stdout.strip() or "nothing").splitlines()[-1]
        return None, f"why exited {asked.returncode} and said: {said}"
