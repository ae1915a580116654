"""A script started again and again as a run's attempts, with checkpoints on, and what each of them told.

Without the supervisor: settings are left beside the channel, and the part inside does the rest by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.inside.ring import STEP, STEP_BODY, TEXT, Reader
from holdfast.inside.settings import FILE

BOOTSTRAP = Path(__file__).parents[2] / "src/holdfast/inside/bootstrap"
SCRIPTS = Path(__file__).parents[1] / "scripts"
KINDS = SCRIPTS / "resume_kinds.py"  # Keras's fit
ON_OTHER_BACKENDS = SCRIPTS / "resume_keras_backends.py"  # the same on the backends torch and JAX
LOOPS = SCRIPTS / "resume_loops.py"  # loops of one's own
TAPES = SCRIPTS / "resume_tensorflow.py"  # loops around tf.GradientTape, and of train_on_batch
UNEDITED = SCRIPTS / "resume_torch.py"  # loops on PyTorch that know nothing of Holdfast


class Attempt:
    def __init__(self, process: subprocess.Popen[str], channel: Path, place: Path) -> None:
        self.process = process
        self.channel = channel
        self.place = place
        self.out = self.err = ""

    def wait_for_training(self, seconds: float = 200.0) -> bool:
        """Until the script has made its first step; False where it ended before."""
        until = time.monotonic() + seconds
        while not (self.place / "training").exists():
            if self.process.poll() is not None or time.monotonic() > until:
                return False
            time.sleep(0.005)
        (self.place / "training").unlink(missing_ok=True)
        return True

    def finish(self, seconds: float = 200.0) -> int:
        try:
            self.out, self.err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.err = self.process.communicate()
        (self.place / "training").unlink(missing_ok=True)
        return self.process.returncode

    def kill(self) -> int:
        self.process.kill()
        return self.finish()

    def _records(self) -> list[tuple[int, bytes]]:
        rings = sorted(self.channel.glob("*.ring"))
        return [record for ring in rings for record in Reader(str(ring)).read(10**6)]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        told = [json.loads(body) for kind, body in self._records() if kind == TEXT]
        return [event for event in told if not kinds or event["kind"] in kinds]

    def steps(self) -> list[tuple[float, int]]:
        """(when, number) of each step that the process itself counted and that is still in its ring."""
        return [STEP_BODY.unpack(body)[:2] for kind, body in self._records() if kind == STEP]

    def report(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        except (IndexError, ValueError):
            return {}
        return found


class Run:
    def __init__(
        self, place: Path, command: list[str], interval_s: float | None = 0.3, python: str = sys.executable
    ) -> None:
        self.place = place
        self.command = [python, *command]
        self.interval_s = interval_s
        self.attempts: list[Attempt] = []
        self.env: dict[str, str] = {}
        self.checkpoints = place / "checkpoints"
        place.mkdir(parents=True, exist_ok=True)

    def start(self, resume: bool | None = None, keep: bool = True, **env: str) -> Attempt:
        number = len(self.attempts) + 1
        channel = self.place / f"inside-{number}"
        channel.mkdir()
        checkpoint = {
            "directory": str(self.checkpoints),
            "interval_s": self.interval_s,
            "resume": number > 1 if resume is None else resume,
        }
        wanted = {"policy": "protect", "attempt": number, **({"checkpoint": checkpoint} if keep else {})}
        (channel / FILE).write_text(json.dumps(wanted))
        path = os.pathsep.join([str(BOOTSTRAP), *filter(None, [env.pop("PYTHONPATH", "")])])
        environment = {**self.environment(), **env, "PYTHONPATH": path, "HOLDFAST_CHANNEL": str(channel)}
        attempt = Attempt(self._popen(environment), channel, self.place)
        self.attempts.append(attempt)
        return attempt

    def unwatched(self, **env: str) -> Attempt:
        """The same without Holdfast."""
        return Attempt(self._popen({**self.environment(), **env}), self.place, self.place)

    def bare(self, **env: str) -> Attempt:
        attempt = self.unwatched(**env)
        attempt.finish(600.0)
        return attempt

    def environment(self) -> dict[str, str]:
        return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", **self.env}

    def _popen(self, environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command, cwd=self.place, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
