"""The process that `holdfast plan` measures in: started as a run starts the script, watched, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.cli.plan_overlay import overlaying, was_made
from holdfast.inside import settings
from holdfast.inside.headroom import left
from holdfast.inside.held_memory import held_bytes
from holdfast.inside.plan import notes as told
from holdfast.planning.measured import Measured, lines_of, measured
from holdfast.supervisor.budget import groups
from holdfast.supervisor.launch import script_environment
from holdfast.supervisor.run_spec import RunSpec
from holdfast.units import amount
from holdfast.vocabulary import Policy

LOOK_S = 0.02  # a probe that goes wrong fills memory at some GiB a second
SPARE_RATIO, SPARE_BYTES = 0.03, 32 << 20  # of the machine, left to everybody else
LAST_LINES = 12
FILES_NAMED = 10
SMALL_PART = 64  # of the script's own batch, where the first size took too much
FIRST_TO_GO = "1000"  # of oom_score_adj: should the kernel have to choose after all


class CannotPlan(Exception):
    """In the words for the user."""


@dataclass(frozen=True, slots=True)
class Measuring:
    command: tuple[str, ...]
    cwd: Path
    batch: int | None
    seconds: float
    timeout_s: float
    room_bytes: int | None  # that there is: a probe may take most of it
    limit_bytes: int | None = None  # that is asked about


@dataclass(frozen=True, slots=True)
class Answer:
    measured: Measured
    notes: tuple[str, ...] = ()
    card_bytes: int | None = None


def measure(wanted: Measuring, say: Callable[[str], None]) -> Answer:
    """A script whose code wants its own size of a batch is started a second time, and left with it."""
    first = _Attempt(wanted, say, resize=True).run()
    if first.measured is None and first.ended == "memory" and first.probed > 1:
        say(f"batch {first.probed} was ended before memory ran out; starting again with a smaller one")
        first = _Attempt(wanted, say, resize=True, first_part=SMALL_PART).run()
    if first.measured is None and first.failed_in_step:
        say("the script does not take batches of another size; starting it again with its own alone")
        first = _Attempt(wanted, say, resize=False).run()
    if first.measured is None:
        raise CannotPlan(first.reason)
    return Answer(first.measured, tuple(first.notes), first.card_bytes)


class _Attempt:
    def __init__(
        self, wanted: Measuring, say: Callable[[str], None], resize: bool, first_part: int | None = None
    ) -> None:
        self._wanted, self._say, self._resize, self._first_part = wanted, say, resize, first_part
        self.ended = ""
        self.probed = 0  # the batch that was being measured at its end
        self.measured: Measured | None = None
        self.reason = ""
        self.notes: list[str] = []
        self.card_bytes: int | None = None
        self.failed_in_step = False
        self._shown = 0

    def run(self) -> _Attempt:
        with _folder() as folder:
            channel = folder / "inside"
            channel.mkdir(mode=0o700)
            asked = {
                "batch": self._wanted.batch, "seconds": self._wanted.seconds, "resize": self._resize,
                "first_part": self._first_part, "room_bytes": self._wanted.room_bytes, "limit_bytes": self._wanted.limit_bytes,
            }  # fmt: skip
            (channel / settings.FILE).write_text(json.dumps({"policy": "plan", "plan": asked}))
            with open(folder / "output", "wb") as output:
                script = self._start(folder, output)
                ended = self._watch(script, channel / told.FILE)
            self._name_files(_lines(channel / told.FILE), was_made(folder))
            self._judge(ended, _lines(channel / told.FILE), (folder / "output").read_text(errors="replace"))
        return self

    def _start(self, folder: Path, output: Any) -> subprocess.Popen[bytes]:
        spec = RunSpec(self._wanted.command, folder, self._wanted.cwd, Policy.ADVISE)
        self._say(f"starting {' '.join(self._wanted.command)[:80]}; its output is not shown")
        return subprocess.Popen(
            self._wanted.command, cwd=self._wanted.cwd, env=script_environment(os.environ, spec),
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            preexec_fn=overlaying(self._wanted.cwd, folder),  # noqa: PLW1509 - this process has no threads
        )  # fmt: skip

    def _watch(self, script: subprocess.Popen[bytes], path: Path) -> str:
        """How it ended: `itself`, `time`, or `memory`."""
        with contextlib.suppress(OSError):
            Path(f"/proc/{script.pid}/oom_score_adj").write_text(FIRST_TO_GO)
        until = time.monotonic() + self._wanted.timeout_s
        where = groups()
        try:
            while script.poll() is None:
                self._show(path)
                if time.monotonic() > until:
                    return "time"
                if self._takes_too_much(script.pid, where):
                    return "memory"
                time.sleep(LOOK_S)
            self._show(path)
            return "itself"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)
            script.wait()

    def _takes_too_much(self, pid: int, where: Any) -> bool:
        room = self._wanted.room_bytes
        with contextlib.suppress(OSError):
            held = held_bytes(Path(f"/proc/{pid}/status").read_bytes()) or 0
            if room is not None and held > room:
                return True
        rest = left(where)
        return rest is not None and room is not None and rest.bytes < max(SPARE_BYTES, int(SPARE_RATIO * room))

    def _show(self, path: Path) -> None:
        lines = _lines(path)
        for line in lines[self._shown :]:
            if line["kind"] == "begun":
                self._say(
                    f"first batch after {line['at'] - lines[0]['at']:.1f} s of preparation: {line['rows'] or '?'} rows"
                )
            elif line["kind"] == "probing" and line["rows"]:
                self._say(f"measuring batch {line['rows']}")
        self._shown = len(lines)

    def _name_files(self, lines: list[dict[str, Any]], kept_apart: bool) -> None:
        paths = [str(line["path"]) for line in lines if line["kind"] == "writes"]
        below = f"{self._wanted.cwd}/"
        really = [path for path in paths if Path(path).exists() and not (kept_apart and path.startswith(below))]
        if really:
            shown = ", ".join(really[:FILES_NAMED]) + (
                f" and {len(really) - FILES_NAMED} more" if really[FILES_NAMED:] else ""
            )
            self.notes.append(f"the script opened for writing: {shown}")

    def _judge(self, ended: str, lines: list[dict[str, Any]], output: str) -> None:
        self.measured = measured(lines)
        self.ended = ended
        self.probed = next((int(line["rows"]) for line in reversed(lines) if line["kind"] == "probing"), 0)
        kinds = [line["kind"] for line in lines]
        self.card_bytes = next((line.get("card_bytes") for line in lines if line["kind"] == "begun"), None)
        if ended == "memory" and self.measured is not None:
            self.notes.append(
                f"batch {self.probed} was ended before it took the memory of others; what is told rests on smaller ones"
            )
        self.failed_in_step = self._resize and ended == "itself" and kinds[-1:] == ["probing"]
        if self.measured is None:
            self.reason = self._why_not(ended, lines, output)

    def _why_not(self, ended: str, lines: list[dict[str, Any]], output: str) -> str:
        said = "".join(f"\n  {line}" for line in output.splitlines()[-LAST_LINES:])
        ours = next((line for line in lines if line["kind"] == "failed"), None)
        cannot = next((line for line in lines if line["kind"] == "cannot"), None)
        if ours is not None:
            return f"Holdfast failed to measure it ({ours['place']}: {ours['reason']}); please report this"
        if ended == "memory":
            room = amount(self._wanted.room_bytes or 0, "bytes")
            return f"it took more than the {room} there are before a step was over, and was ended: not even the smallest fits"
        if cannot is not None:
            return str(cannot["reason"])
        if ended == "time":
            return f"no training step was over within {self._wanted.timeout_s:.0f} s; give it more with --timeout"
        if not lines:
            return f"the script ended without importing a framework that is known; its last lines:{said}"
        return f"the script ended before a training step was over; its last lines:{said}"


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    shared = Path("/dev/shm")
    place = shared if os.access(shared, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="holdfast-plan-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return lines_of(path.read_text())
    except OSError:
        return []
