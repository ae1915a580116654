"""kill -9 of unedited training scripts at seeded random instants, gone on with each time: do they end as if nothing had happened?

python -m tests.crash.kill_table --kills 2 --seed 1               every kind of tests/crash/kinds.py
python -m tests.crash.kill_table --kills 5 torch.gan tensorflow   some of them: a kind, or a group
python -m tests.crash.kill_table --aim save                       killed inside the writing of a checkpoint
python -m tests.crash.kill_table --jobs 8                         eight processes at a time, on a machine with the cores

A script is right when its weights, its own record and the random numbers after it are those of the undisturbed run, bit for bit;
when each attempt that found a checkpoint went on from it; and when no more is repeated than an interval of the killed attempt's
own steps. Of a loop that cannot be saved exactly a checkpoint is asked for: it is right when the answer says why, and when it
trains as ever. Frameworks are imported once for each group; attempts are forked from there.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.inside import checkpoint_store
from holdfast.inside.script_state.own_files import FILE
from tests.crash.forked import NEVER_S, Attempt, Child, load
from tests.crash.kinds import GROUPS, KINDS, Kind

INTERVAL_S, SLACK_S = 0.08, 0.5  # a loaded machine starts the writing thread late
ENVIRONMENT = {"EPOCHS": "5", "STEP_PAUSE_S": "0.002", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
LARGE = {
    "fit": "1024"
}  # a width that makes about 12 MB of state, so that a save takes a while; loops explode at such widths
INTO_A_SAVE_S = {"fit": 0.04}  # at most, of a kill that is aimed at one
INTO_A_SAVE_OF_A_LOOP_S = 0.006
TOO_EARLY = ("unknown", "no fit is under way")  # answers of a process that does not train yet
PATIENCE_S = 120.0
MOST_IN_A_JOB = 4


@dataclass
class Outcome:
    kind: Kind
    kills: int = 0
    inside_a_save: int = 0
    restored: list[int] = field(default_factory=list)  # the steps that attempts went on from
    repeated: list[int] = field(default_factory=list)
    paused_ms: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    own: int = 0  # attempts in which the script went on from a checkpoint of its own

    def __str__(self) -> str:
        verdict = "; ".join(self.problems) or "right"
        if self.answers:
            return f"{self.kind!s:33} {verdict:6} {self.answers[0]}"
        pauses = f"{sorted(self.paused_ms)[len(self.paused_ms) // 2]:.1f} ms" if self.paused_ms else "none"
        told = f"{self.kills} kills, went on from {self.restored}, repeated {self.repeated}, pause {pauses}"
        told += f", {self.inside_a_save} of them inside a save" if self.inside_a_save else ""
        told += f", from its own checkpoint {self.own} times" if self.own else ""
        return f"{self.kind!s:33} {verdict:6} {told}"


class Trial:
    """One kind, killed, gone on with, killed again, and left to end."""

    def __init__(self, kind: Kind, seed: int, place: Path, aim: str) -> None:
        self.kind, self.place, self.aim = kind, place, aim
        self.chance = random.Random(f"{kind} {seed}")
        self.checkpoints = place / "checkpoints"
        self.outcome = Outcome(kind)
        self.lasts_s = 0.25  # at most from a checkpoint to the kill
        self._attempts = 0

    def attempt(self, script: Path | None = None, interval_s: float = INTERVAL_S) -> Attempt:
        self._attempts += 1
        return Attempt(self.kind, self.place / f"attempt-{self._attempts}", self.checkpoints, interval_s, script)

    def undisturbed(self) -> dict[str, Any]:
        return Attempt(self.kind, self.place / "undisturbed", None, INTERVAL_S).report()

    def killed(self, kills: int) -> Outcome:
        began = time.monotonic()
        outcome, expected = self.outcome, self.undisturbed()
        self.lasts_s = 0.7 * (time.monotonic() - began) / kills
        if "failed" in expected:
            outcome.problems.append(f"does not run by itself: {expected['failed']}")
            return outcome
        for number in range(kills + 1):
            before = checkpoint_store.newest(str(self.checkpoints))
            attempt = self.attempt()
            if number < kills and self._kill(attempt):
                outcome.kills += 1
                self._note(attempt, before)
                self._note_repeated(attempt)
                continue
            report = attempt.report()
            self._note(attempt, before)
            outcome.problems += [f"{key} differs" for key in self.kind.same if report.get(key) != expected.get(key)]
            outcome.problems += [report["failed"]] if "failed" in report else []
            break
        return outcome

    def _kill(self, attempt: Attempt) -> bool:
        """Some time after its first checkpoint, so that there is something to go on from; False where it was over before."""
        if self.aim == "save":
            return self._kill_in_save(attempt)
        newest = max(checkpoint_store.numbers(str(self.checkpoints)), default=0)
        until = time.monotonic() + PATIENCE_S
        while max(checkpoint_store.numbers(str(self.checkpoints)), default=0) <= newest and time.monotonic() < until:
            if attempt.is_over():
                return False
            time.sleep(0.005)
        while self.kind.expected == "own" and not (self.checkpoints / FILE).exists() and not attempt.is_over():
            time.sleep(0.005)
        time.sleep(self.chance.uniform(0.0, self.lasts_s))
        return _kill(attempt)

    def _kill_in_save(self, attempt: Attempt) -> bool:
        longest_s = INTO_A_SAVE_S.get(self.kind.group, INTO_A_SAVE_OF_A_LOOP_S)
        to_pass, offset = self.chance.randrange(4), self.chance.uniform(0.0, longest_s)
        until, passed, inside = time.monotonic() + PATIENCE_S, 0, False
        torn = _torn(self.checkpoints)  # by kills before
        while time.monotonic() < until and not attempt.is_over():
            saving = bool(_torn(self.checkpoints) - torn)
            passed += saving and not inside
            inside = saving
            if passed > to_pass:
                time.sleep(offset)
                self.outcome.inside_a_save += bool(_torn(self.checkpoints) - torn)
                return _kill(attempt)
        return False

    def _note(self, attempt: Attempt, before: dict[str, Any] | None) -> None:
        outcome, told = self.outcome, attempt.events()
        restored = [event for event in told if event["kind"] == "checkpoint.restored"]
        outcome.restored += [int(event["step"]) for event in restored]
        outcome.paused_ms += [
            1000 * float(event["paused_s"])
            for event in told
            if event["kind"] == "checkpoint.saved" and event["paused_s"]
        ]
        wrong = [event for event in told if event["kind"] in ("checkpoint.mismatch", "inside.failed")]
        outcome.problems += [f"{event['kind']}: {event.get('reason')}" for event in wrong]
        outcome.problems += [] if told or before is None else ["it told nothing"]
        outcome.own += sum(event["kind"] == "checkpoint.own" for event in told)
        if before is None or outcome.own or wrong or not attempt.steps():
            return
        if before["number"] not in [event["number"] for event in restored]:
            outcome.problems.append(f"checkpoint {before['number']} was there, went on from {restored}")

    def _note_repeated(self, killed: Attempt) -> None:
        """By the killed attempt's own counter: how many steps it made beyond what can be gone on from."""
        steps, newest = killed.steps(), checkpoint_store.newest(str(self.checkpoints))
        if not steps or newest is None or self.outcome.own:
            return
        beyond = [at for at, number in steps if number > int(newest["step"])]
        self.outcome.repeated.append(len(beyond))
        writes = [float(event["seconds"]) for event in killed.events("checkpoint.saved")]
        allowed = INTERVAL_S + 2 * max(writes, default=0.0) + SLACK_S
        if (
            not self.aim and beyond and beyond[-1] - beyond[0] > allowed
        ):  # how long a torn save would have taken is not known
            self.outcome.problems.append(f"{beyond[-1] - beyond[0]:.2f} s of steps to repeat, {allowed:.2f} s allowed")

    def refused(self) -> Outcome:
        """A checkpoint is asked for while a loop runs that cannot be saved exactly: the answer says why, and it goes on as
        ever."""
        outcome, expected = self.outcome, self.undisturbed()
        attempt, until = self.attempt(interval_s=NEVER_S), time.monotonic() + PATIENCE_S
        while not outcome.answers and not attempt.is_over() and time.monotonic() < until:
            if (attempt.folder / "ask").exists():
                attempt.ask_for_checkpoint()
            time.sleep(0.05)
            results = [event["result"] for event in attempt.events("command.done")]
            outcome.answers = [result for result in results if result not in TOO_EARLY][:1]
        report = attempt.report()
        self._note(attempt, None)
        outcome.problems += ["it did not train as ever"] if report != expected or "failed" in expected else []
        outcome.problems += ["nothing was answered"] if not outcome.answers else []
        outcome.problems += ["a checkpoint was saved"] if checkpoint_store.numbers(str(self.checkpoints)) else []
        return outcome

    def changed(self) -> Outcome:
        """Killed, then edited, or begun with another model: the script ends in one line before it trains, with exit code 2,
        and its checkpoint is kept."""
        outcome, script = self.outcome, self.kind.script
        kind = Kind(self.kind.group, "plain", script)
        self.kind = kind
        other = self.place / "edited" / script.name
        shutil.copytree(script.parent, other.parent, ignore=shutil.ignore_patterns("__pycache__"))
        other.write_text(script.read_text().replace("lr=0.01, momentum=0.9", "lr=0.02, momentum=0.9"))
        outcome.kills += self._kill(self.attempt())
        before = checkpoint_store.newest(str(self.checkpoints))
        edited = outcome.kind.expected == "edited"
        os.environ["WIDTH"] = "32" if edited else "33"
        attempt = self.attempt(other if edited else None)
        code = attempt.wait()
        del os.environ["WIDTH"]
        outcome.answers = attempt.err().splitlines()
        outcome.problems += [] if code == 2 else [f"ended with {code}"]
        outcome.problems += [] if len(outcome.answers) == 1 else [f"{len(outcome.answers)} lines were said"]
        outcome.problems += [] if checkpoint_store.newest(str(self.checkpoints)) == before else ["not kept"]
        return outcome

    def run(self, kills: int) -> Outcome:
        if self.kind.expected in ("edited", "other_model"):
            return self.changed()
        return self.refused() if self.kind.expected == "refused" else self.killed(kills)


def _kill(attempt: Attempt) -> bool:
    if attempt.is_over():
        return False
    os.kill(attempt.pid, signal.SIGKILL)
    attempt.wait()
    return True


def _torn(directory: Path) -> set[str]:
    """What is being saved or removed, or was when somebody was killed."""
    try:
        return {name for name in os.listdir(directory) if name.startswith((".saving-", ".removing-"))}  # noqa: PTH208 - 1 kHz
    except OSError:
        return set()


def run_group(group: str, kinds: list[Kind], options: argparse.Namespace) -> int:
    """In a process of its own; the last line says how many were right."""
    os.environ.update({**ENVIRONMENT, **GROUPS[group].env})
    if options.aim and group in LARGE:
        os.environ["WIDTH"] = LARGE[group]
    load(group)
    print(group + ": " + ", ".join(f"{name} {_version(name)}" for name in GROUPS[group].loads), flush=True)
    wrong, killed, inside, parent = 0, 0, 0, os.getpid()
    for kind in kinds:
        for seed in (
            options.seed,
            options.seed + 1000,
            options.seed + 2000,
        ):  # again where it was over before a kill came
            place = Path(tempfile.mkdtemp(prefix="holdfast-kills-"))
            try:
                outcome = Trial(kind, seed, place, options.aim).run(options.kills)
            finally:
                if os.getpid() == parent:
                    shutil.rmtree(place, ignore_errors=True)
            if outcome.problems or outcome.answers or outcome.kills >= options.kills:
                break
        if kind.expected == "exact" and not (outcome.kills or outcome.problems):
            outcome.problems.append("no checkpoint was there to be killed after")
        wrong, killed, inside = wrong + bool(outcome.problems), killed + outcome.kills, inside + outcome.inside_a_save
        print(outcome, flush=True)
    print(f"{len(kinds) - wrong} {killed} {inside}", flush=True)
    return 1 if wrong else 0


def _version(name: str) -> str:
    return str(sys.modules[name.split(".", maxsplit=1)[0]].__version__)


def chosen(words: list[str], aim: str) -> list[Kind]:
    every = [kind for kind in KINDS if not aim or kind.expected in ("exact", "own")]
    unknown = [word for word in words if not any(word in (str(kind), kind.group) for kind in KINDS)]
    if unknown:
        raise SystemExit(f"no such kind or group: {', '.join(unknown)}")
    return [kind for kind in (KINDS if words else every) if not words or str(kind) in words or kind.group in words]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kinds", nargs="*", help="all of them without a name")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--aim", choices=("", "save"), default="", help="save: inside the writing of a checkpoint")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default: %(default)s)")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    kinds = chosen(options.kinds, options.aim)
    if options.in_this_process:
        return run_group(kinds[0].group, kinds, options)
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}", flush=True)
    shared = list(_shared_out(kinds, options.jobs))
    with ThreadPoolExecutor(options.jobs) as pool:
        counts = list(pool.map(lambda some: _in_process_of_its_own(some, options), shared))
    right, killed, inside = (sum(column) for column in zip(*counts, strict=True))
    print(
        f"{right} of {len(kinds)} scripts right, {killed} kills" + (f", {inside} inside a save" if options.aim else "")
    )
    return 0 if right == len(kinds) else 1


def _shared_out(kinds: list[Kind], jobs: int) -> Iterator[list[str]]:
    """The kinds that one process runs: all of a group, since importing its framework takes seconds; with several jobs four at
    most, so that they end together."""
    for group in GROUPS:
        of_group = [str(kind) for kind in kinds if kind.group == group]
        size = len(of_group) if jobs == 1 else MOST_IN_A_JOB
        for start in range(0, len(of_group), size or 1):
            yield of_group[start : start + size]


def _in_process_of_its_own(kinds: list[str], options: argparse.Namespace) -> list[int]:
    command = [sys.executable, "-m", __spec__.name if __spec__ else "", "--in-this-process", *kinds]
    command += [
        "--kills",
        str(options.kills),
        "--seed",
        str(options.seed),
        *(["--aim", options.aim] if options.aim else []),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    last = ""
    assert process.stdout is not None
    for line in process.stdout:
        if last:
            print(last, flush=True)
        last = line.rstrip("\n")
    process.wait()
    counts = [int(word) for word in last.split()] if last.replace(" ", "").isdigit() else []
    if not counts:
        print(f"{last}\nthe process of this group ended with {process.returncode}", flush=True)
    return counts or [0, 0, 0]


if __name__ == "__main__":
    try:
        ended = main()
    except Child as child:
        ended = 0
        child.run()
    sys.exit(ended)
