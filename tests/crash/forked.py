"""Attempts of a script as forks of a process in which its framework is imported already: seconds less for each.

In each of them the part inside is started as the bootstrap would do it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from holdfast.inside.frameworks import FRAMEWORKS, TRAINERS
from holdfast.inside.ring import STEP, STEP_BODY, TEXT, Reader
from tests.crash.kinds import GROUPS, Kind

NEVER_S = 600.0
MODULES = {one.module for one in FRAMEWORKS}


class Child(BaseException):
    """Raised in a forked process, up to the bottom of the stack: the script is run there, as it would be by itself."""

    def __init__(self, kind: Kind, script: Path, checkpoints: Path | None, interval_s: float) -> None:
        super().__init__()
        self.kind, self.script, self.checkpoints, self.interval_s = kind, script, checkpoints, interval_s

    def run(self) -> None:
        script = self.script
        sys.argv = [str(script), self.kind.name]
        sys.path.insert(0, str(script.parent))
        main = type(sys)("__main__")
        main.__file__ = str(script)
        sys.modules["__main__"] = main
        if self.checkpoints is not None:
            _start_inside(self.checkpoints, self.interval_s, GROUPS[self.kind.group].loads)
        exec(compile(script.read_text(), str(script), "exec"), vars(main))


def _start_inside(checkpoints: Path, interval_s: float, loaded: tuple[str, ...]) -> None:
    channel = Path("channel").absolute()
    channel.mkdir()
    wanted = {"directory": str(checkpoints), "interval_s": interval_s, "resume": checkpoints.exists()}
    settings = {"policy": "protect", "attempt": 1, "checkpoint": wanted}
    (channel / "settings.json").write_text(json.dumps(settings))
    os.environ["HOLDFAST_CHANNEL"] = str(channel)
    from holdfast.inside import start

    sys.modules["holdfast_inside.start"] = start
    for name in (*loaded, *TRAINERS):
        if name in sys.modules and (name in TRAINERS or name in MODULES):
            start.imported(name, str(channel))


class Attempt:
    def __init__(
        self, kind: Kind, folder: Path, checkpoints: Path | None, interval_s: float, script: Path | None = None
    ):
        self.folder = folder
        self._readers: dict[str, Reader] = {}
        folder.mkdir(parents=True)
        self.pid = os.fork()
        if self.pid:
            return
        os.setsid()
        os.chdir(folder)
        os.environ["WORK"] = str((folder if checkpoints is None else checkpoints.parent) / "work")
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), number)
        raise Child(kind, script or kind.script, checkpoints, interval_s)

    def is_over(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def report(self) -> dict[str, Any]:
        """Its last line of output, once it is over."""
        self.wait()
        with contextlib.suppress(OSError, ValueError, IndexError):
            found: dict[str, Any] = json.loads((self.folder / "out").read_text().splitlines()[-1])
            return found
        return {"failed": self.err()[-600:]}

    def err(self) -> str:
        return (self.folder / "err").read_text() if (self.folder / "err").exists() else ""

    def _records(self) -> list[tuple[int, bytes]]:
        rings = (self.folder / "channel").glob("*.ring")
        return [record for ring in rings for record in Reader(str(ring)).read(10**6)]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        told = [json.loads(body) for kind, body in self._records() if kind == TEXT]
        return [event for event in told if not kinds or event["kind"] in kinds]

    def steps(self) -> list[tuple[float, int]]:
        """(when, number) of each step that is still in its ring."""
        return [STEP_BODY.unpack(body)[:2] for kind, body in self._records() if kind == STEP]

    def ask_for_checkpoint(self) -> None:
        for ring in (self.folder / "channel").glob("*.ring"):
            with contextlib.suppress(OSError, ValueError):
                reader = self._readers.setdefault(str(ring), Reader(str(ring)))  # which numbers its commands
                reader.send({"do": "checkpoint", "id": 1})


def load(group: str) -> None:
    for name in GROUPS[group].loads:
        importlib.import_module(name)
    if "torch" in GROUPS[group].loads:
        _load_rest_of_torch()


def _load_rest_of_torch() -> None:
    """PyTorch loads its compiler with the first optimizer: two seconds that would be each attempt's."""
    import torch

    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
