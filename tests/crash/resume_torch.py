"""kill -9 of unedited PyTorch loops at seeded random instants, gone on with each time: do they end as if nothing had happened?

python -m tests.crash.resume_torch --kills 2 --seed 1               every loop of tests/scripts/resume_torch*.py
python -m tests.crash.resume_torch --kills 5 --seed 1 gan workers   some of them

PyTorch is imported once; each attempt is a process forked from there, in which the part inside is started as the bootstrap
would. A loop is right when its weights, its own record and the random numbers after it are those of the undisturbed run, bit
for bit, and when each attempt that found a checkpoint went on from it. Of a loop that cannot be saved exactly a checkpoint is
asked for: it is right when the answer says why, and when it trains as ever.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from holdfast.inside import checkpoint_store
from holdfast.inside.frameworks import TRAINERS
from holdfast.inside.ring import TEXT, Reader
from tests.inside.attempts import UNEDITED

OWN = UNEDITED.with_name("resume_torch_own.py")
TRAINED = {  # kinds that a library's trainer runs, by how they begin: the script, and what is imported once for all
    "hf_": (UNEDITED.with_name("resume_hf.py"), "transformers.trainer"),
    "pl_": (UNEDITED.with_name("resume_lightning.py"), "lightning.pytorch"),
    "other_pl_": (UNEDITED.with_name("resume_lightning.py"), "pytorch_lightning"),
}
REFUSED = UNEDITED.with_name("resume_torch_refused.py")
INTERVAL_S = 0.08
ENVIRONMENT = {"EPOCHS": "5", "STEP_PAUSE_S": "0.002", "CUDA_VISIBLE_DEVICES": "-1"}
PATIENCE_S = 120.0


@dataclass
class Outcome:
    kind: str
    kills: int = 0
    restored: list[int] = field(default_factory=list)  # the steps that attempts went on from
    paused_ms: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # why no checkpoint was taken at some place
    own: int = 0  # attempts in which the script went on from a checkpoint of its own

    def __str__(self) -> str:
        if self.answers:
            return f"{self.kind:25} {'; '.join(self.problems) or 'right':8} {self.answers[0]}"
        pauses = f"{sorted(self.paused_ms)[len(self.paused_ms) // 2]:.1f} ms" if self.paused_ms else "none"
        told = f"{self.kills} kills, went on from steps {self.restored}, pause {pauses}"
        told += f", from its own checkpoint {self.own} times" if self.own else ""
        return f"{self.kind:18} {'; '.join(self.problems) or 'right':8} {told}"


def trial(kind: str, seed: int, kills: int, place: Path, script: Path = UNEDITED) -> Outcome:
    chance, outcome = random.Random(f"{kind} {seed}"), Outcome(kind)
    undisturbed = _finished(_forked(script, kind, place / "undisturbed", None), place / "undisturbed")
    if not undisturbed:
        outcome.problems.append("does not run by itself")
        return outcome
    for attempt in range(1, kills + 2):
        folder, before = place / f"attempt-{attempt}", checkpoint_store.newest(str(place / "checkpoints"))
        pid = _forked(script, kind, folder, place / "checkpoints")
        if attempt <= kills and _killed(pid, folder, place / "checkpoints", chance):
            outcome.kills += 1
            _note(outcome, folder, before)
            continue
        report = _finished(pid, folder)
        _note(outcome, folder, before)
        outcome.problems += [
            f"{key} differs{_where(undisturbed[key], report.get(key))}"
            for key in undisturbed
            if report.get(key) != undisturbed[key]
        ]
        outcome.problems += [report["failed"]] if "failed" in report else []
        break
    if kills and not outcome.kills:
        outcome.problems.append(f"never killed, since nothing was saved: {outcome.refused}")
    return outcome


def _where(one: Any, other: Any) -> str:
    """The place in a record at which two differ first."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            if pair[0] != pair[1]:
                return f"[{index}]{_where(*pair)}"
    return f": {str(one)[:120]} / {str(other)[:120]}"


def answered(kind: str, place: Path) -> Outcome:
    """A checkpoint is asked for while a loop runs that cannot be saved exactly: the answer says why, and it goes on as ever."""
    outcome = Outcome(kind)
    undisturbed = _finished(_forked(REFUSED, kind, place / "undisturbed", None), place / "undisturbed")
    pid, until = _forked(REFUSED, kind, place / "asked", place / "checkpoints"), time.monotonic() + PATIENCE_S
    while not outcome.answers and not _is_over(pid) and time.monotonic() < until:
        for ring in (place / "asked/channel").glob("*.ring") if (place / "asked/ask").exists() else ():
            with contextlib.suppress(OSError, ValueError):
                Reader(str(ring)).send({"do": "checkpoint", "id": 1})
        time.sleep(0.05)
        outcome.answers = [event["result"] for event in events(place / "asked") if event["kind"] == "command.done"][:1]
    report = _finished(pid, place / "asked")
    _note(outcome, place / "asked", None)
    outcome.problems += ["it did not train as ever"] if report != undisturbed or not undisturbed else []
    outcome.problems += ["nothing was answered"] if outcome.answers in ([], ["unknown"]) else []
    outcome.problems += ["a checkpoint was saved"] if checkpoint_store.numbers(str(place / "checkpoints")) else []
    return outcome


def changed(what: str, seed: int, place: Path) -> Outcome:
    """Killed, then edited, or begun with another model: the script ends in one line before it trains, with exit code 2, and
    its checkpoint is kept."""
    kind, outcome = "plain", Outcome(what)
    other = place / "edited" / UNEDITED.name
    other.parent.mkdir()
    other.write_text(UNEDITED.read_text().replace("lr=0.01, momentum=0.9", "lr=0.02, momentum=0.9"))
    shutil.copy(UNEDITED.with_name("resume_torch_engine.py"), other.parent)
    pid = _forked(UNEDITED, kind, place / "attempt-1", place / "checkpoints")
    outcome.kills += _killed(pid, place / "attempt-1", place / "checkpoints", random.Random(seed))
    before = checkpoint_store.newest(str(place / "checkpoints"))
    script = other if what == "edited" else UNEDITED
    os.environ["WIDTH"] = "32" if what == "edited" else "33"
    _, status = os.waitpid(_forked(script, kind, place / "attempt-2", place / "checkpoints"), 0)
    del os.environ["WIDTH"]
    outcome.answers = (place / "attempt-2/err").read_text().splitlines()
    outcome.problems += [] if os.waitstatus_to_exitcode(status) == 2 else [f"ended with {status}"]
    outcome.problems += [] if len(outcome.answers) == 1 else [f"{len(outcome.answers)} lines were said"]
    outcome.problems += [] if checkpoint_store.newest(str(place / "checkpoints")) == before else ["not kept"]
    return outcome


def _is_over(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _killed(pid: int, folder: Path, checkpoints: Path, chance: random.Random) -> bool:
    """Some time after its first checkpoint, so that there is something to go on from; False where it was over before."""
    newest = max(checkpoint_store.numbers(str(checkpoints)), default=0) + chance.randrange(3)
    until = time.monotonic() + PATIENCE_S
    while max(checkpoint_store.numbers(str(checkpoints)), default=0) <= newest and time.monotonic() < until:
        if _is_over(pid):
            return False
        time.sleep(0.005)
    time.sleep(chance.uniform(0.0, 0.25))
    if _is_over(pid):
        return False
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def _finished(pid: int, folder: Path) -> dict[str, Any]:
    os.waitpid(pid, 0)
    with contextlib.suppress(OSError, ValueError, IndexError):
        found: dict[str, Any] = json.loads((folder / "out").read_text().splitlines()[-1])
        return found
    return {"failed": (folder / "err").read_text()[-600:]} if (folder / "err").exists() else {}


def _note(outcome: Outcome, folder: Path, before: dict[str, Any] | None) -> None:
    told = events(folder)
    restored = [event for event in told if event["kind"] == "checkpoint.restored"]
    outcome.restored += [int(event["step"]) for event in restored]
    outcome.paused_ms += [1000 * float(event["paused_s"]) for event in told if event["kind"] == "checkpoint.saved"]
    wrong = [event for event in told if event["kind"] in ("checkpoint.mismatch", "inside.failed")]
    outcome.problems += [f"{event['kind']}: {event.get('reason')}" for event in wrong]
    outcome.problems += [] if told or before is None else ["it told nothing"]
    outcome.refused += [
        str(event["reason"]) for event in told if event["kind"] in ("checkpoint.failed", "checkpoint.not_made")
    ]
    outcome.own += sum(event["kind"] == "checkpoint.own" for event in told)
    if (
        before is not None
        and not outcome.own
        and [event["number"] for event in restored] != [before["number"]]
        and not wrong
    ):
        outcome.problems.append(f"checkpoint {before['number']} was there, went on from {restored}")


def events(folder: Path) -> list[dict[str, Any]]:
    rings = (folder / "channel").glob("*.ring")
    return [json.loads(body) for ring in rings for kind, body in Reader(str(ring)).read(10**6) if kind == TEXT]


class Child(BaseException):
    """Raised in a forked process, up to the bottom of the stack: the script is run there, as it would be by itself."""

    def __init__(self, script: Path, kind: str, checkpoints: Path | None) -> None:
        super().__init__()
        self.script, self.kind, self.checkpoints = script, kind, checkpoints

    def run(self) -> None:
        script = self.script
        sys.argv = [str(script), self.kind]
        sys.path.insert(0, str(script.parent))
        main = type(sys)("__main__")
        main.__file__ = str(script)
        sys.modules["__main__"] = main
        if self.checkpoints is not None:
            _start_inside(self.checkpoints, 600.0 if script == REFUSED else INTERVAL_S)
        exec(compile(script.read_text(), str(script), "exec"), vars(main))


def _forked(script: Path, kind: str, folder: Path, checkpoints: Path | None) -> int:
    folder.mkdir(parents=True)
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    os.chdir(folder)
    os.environ["WORK"] = str((folder if checkpoints is None else checkpoints.parent) / "work")
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), number)
    raise Child(script, kind, checkpoints)


def _start_inside(checkpoints: Path, interval_s: float) -> None:
    channel = Path("channel").absolute()
    channel.mkdir()
    wanted = {"directory": str(checkpoints), "interval_s": interval_s, "resume": checkpoints.exists()}
    settings = {"policy": "protect", "attempt": 1, "checkpoint": wanted}
    (channel / "settings.json").write_text(json.dumps(settings))
    os.environ["HOLDFAST_CHANNEL"] = str(channel)
    from holdfast.inside import start

    sys.modules["holdfast_inside.start"] = start
    start.imported("torch", str(channel))
    for name in TRAINERS:
        if name in sys.modules:
            start.imported(name, str(channel))


def _import_the_rest() -> None:
    """PyTorch loads its compiler with the first optimizer: two seconds that would be each attempt's."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def kinds_of(script: Path) -> list[str]:
    text = script.read_text()
    listed = text[text.index("KINDS = {") : text.index("}  # fmt: skip")]
    return [word.strip() for word in listed[listed.index("in (") + 4 : listed.rindex(")")].split(",") if word.strip()]


def trainers() -> list[str]:
    """Those of Lightning under its other name, too."""
    hf, lightning, _ = (kinds_of(script) for script, _ in TRAINED.values())
    return [*hf, *lightning, "other_pl_plain"]


def outcome_of(kind: str, seed: int, kills: int, place: Path) -> Outcome:
    if kind in ("edited", "other_model"):
        return changed(kind, seed, place)
    if kind == "own":
        return trial(kind, seed, kills, place, OWN)
    for prefix, (script, package) in TRAINED.items():
        if kind.startswith(prefix):
            os.environ["PACKAGE"] = package
            outcome = trial(kind.removeprefix("other_"), seed, kills, place, script)
            outcome.kind = kind
            return outcome
    return answered(kind, place) if kind in kinds_of(REFUSED) else trial(kind, seed, kills, place)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kinds", nargs="*", help="all of them without a name")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    torch.set_num_threads(1)
    _import_the_rest()
    kinds = options.kinds or [*kinds_of(UNEDITED), "own", "edited", "other_model", *kinds_of(REFUSED), *trainers()]
    for prefix, (_, package) in TRAINED.items():
        if any(kind.startswith(prefix) for kind in kinds):
            import_module(package)
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}, torch {torch.__version__}")
    wrong, killed, parent = 0, 0, os.getpid()
    for kind in kinds:
        place = Path(tempfile.mkdtemp(prefix="holdfast-resume-"))
        try:
            outcome = outcome_of(kind, options.seed, options.kills, place)
        finally:
            if os.getpid() == parent:
                shutil.rmtree(place, ignore_errors=True)
        wrong, killed = wrong + bool(outcome.problems), killed + outcome.kills
        print(outcome, flush=True)
    print(f"{len(kinds) - wrong} of {len(kinds)} loops right, {killed} kills")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        ended = main()
    except Child as child:
        ended = 0
        child.run()
    sys.exit(ended)
