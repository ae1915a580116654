"""kill -9 of the watcher, the relay or the script at a seeded random instant: does the record read, is the ending right?

python -m tests.crash.killing --count 50
python -m tests.crash.killing --count 50 --restarts   the script dies once by itself and is started again meanwhile
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

PATIENCE_S = 120.0
HOLDFAST = [sys.executable, "-m", "holdfast"]
VICTIM = """
import sys, time
for step in range(40):
    print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
    time.sleep(0.03)
open("finished", "w").close()
%s
"""
TRAINS = """
import json, os, time, holdfast
from holdfast.inside import checkpoint_store as store
settings = json.load(open(os.path.join(os.environ["HOLDFAST_CHANNEL"], "settings.json")))
folder = settings["checkpoint"]["directory"]
found = store.newest(folder) if settings["checkpoint"]["resume"] else None
begin = found["step"] if found else 0


def save(step):
    if hasattr(store, "write"):
        store.write(folder, {"step": step}, lambda place: None)
        return
    os.makedirs(os.path.join(folder, "part"))
    with open(os.path.join(folder, "part", "manifest.json"), "w") as file:
        json.dump({"step": step}, file)
    os.rename(os.path.join(folder, "part"), os.path.join(folder, "%08d" % step))


print("attempt", settings["attempt"], flush=True)
for step in range(begin + 1, 41):
    time.sleep(0.02)
    holdfast.step()
    if step % 10 == 0:
        save(step)
    if step == 25 and not os.path.exists("died"):
        open("died", "w").close()
        time.sleep(0.3)
        os.kill(os.getpid(), 9)
open("finished", "w").close()
"""
ENDINGS = {
    "finishes": ("", 0, "completed", None),
    "raises": ("raise ValueError('labels and logits differ')", 1, "failed", "unhandled-exception"),
    "exits 3": ("sys.exit(3)", 3, "failed", None),
}


@dataclass(frozen=True)
class Attempt:
    seed: int
    target: str
    instant_s: float
    planned: str
    problem: str

    def __str__(self) -> str:
        verdict = self.problem or "right"
        return f"{self.seed:5}  {self.target:8}  {self.instant_s:6.3f} s  {self.planned:9}  {verdict}"


def attempt(seed: int) -> Attempt:
    chance = random.Random(seed)
    target = chance.choice(("watcher", "relay", "script"))
    planned = chance.choice(sorted(ENDINGS))
    instant = chance.uniform(0.0, 1.7)
    with tempfile.TemporaryDirectory(prefix="holdfast-killing-") as folder:
        place = Path(folder)
        (place / "train.py").write_text(VICTIM % ENDINGS[planned][0])
        relay = subprocess.Popen(
            [*HOLDFAST, "run", "--", sys.executable, "train.py"],
            cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(instant)
        hit = _kill(relay, target)
        out, _ = relay.communicate(timeout=PATIENCE_S)
        problem = _judge(place, relay.returncode, out, target if hit else "nothing", planned)
    return Attempt(seed, target if hit else f"{target}*", instant, planned, problem)


def attempt_with_restart(seed: int) -> Attempt:
    chance = random.Random(seed)
    target = chance.choice(("watcher", "relay", "script"))
    instant = chance.uniform(0.0, 4.5)
    with tempfile.TemporaryDirectory(prefix="holdfast-killing-") as folder:
        place = Path(folder)
        (place / "train.py").write_text(TRAINS)
        relay = subprocess.Popen(
            [*HOLDFAST, "run", "--", sys.executable, "train.py"],
            cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(instant)
        hit = _kill(relay, target)
        out, err = relay.communicate(timeout=PATIENCE_S)
        problem = _judge_restart(place, relay.returncode, target if hit else "nothing")
        problem += f" {out!r} {err!r}" if problem else ""
    return Attempt(seed, target if hit else f"{target}*", instant, "restarts", problem)


def _judge_restart(place: Path, code: int, target: str) -> str:
    """It finishes, except that a relay without its watcher starts nothing again, and what has not trained is not either."""
    answer = _answer(place)
    got = (code, answer["outcome"], answer["cause"] and answer["cause"]["id"])
    if (place / "finished").exists():
        expected = (-signal.SIGKILL if target == "relay" else 0, "recovered", "killed")
        return "" if got == expected else f"wrong: {got}, expected {expected}"
    if target == "relay" and not (place / "died").exists() and not list((place / ".holdfast/runs").glob("*/journal/*")):
        return ""  # killed before anything had begun
    may_end = target == "watcher" or (target == "script" and not (place / "died").exists())
    if may_end and got == (137, "failed", "killed"):
        return ""
    return f"wrong: {got}, and it did not finish"


def _kill(relay: subprocess.Popen[bytes], target: str) -> bool:
    """False when the one to kill was not there (any more)."""
    try:
        process = psutil.Process(relay.pid)
        until = time.monotonic() + 30
        for _ in range({"relay": 0, "watcher": 1, "script": 2}[target]):
            while not (children := [one for one in process.children() if os.getsid(one.pid) == one.pid]):
                if relay.poll() is not None or time.monotonic() > until:
                    return False
                time.sleep(0.001)
            process = children[0]
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        os.kill(process.pid, signal.SIGKILL)
    except (psutil.Error, ProcessLookupError):
        return False
    return True


def _judge(place: Path, code: int, out: bytes, target: str, planned: str) -> str:
    expected_code, outcome, cause = ENDINGS[planned][1:]
    if target == "relay":
        _wait_until_all_are_gone(place)  # the watcher may be about to begin
        if not list((place / ".holdfast/runs").glob("*/journal/*")) and not (place / "finished").exists():
            return ""  # killed before anything had begun
        expected_code = -signal.SIGKILL
    answer = _answer(place)
    if target == "script":
        if (place / "finished").exists() and answer["outcome"] == outcome:
            return ""  # its last instant: it had ended by itself
        expected_code, outcome, cause = 137, "failed", "killed"
    got = (code, answer["outcome"], answer["cause"] and answer["cause"]["id"])
    if got != (expected_code, outcome, cause):
        return f"wrong: {got}, expected {(expected_code, outcome, cause)}"
    if target in ("watcher", "nothing") and out.count(b"step ") != 40:
        return f"wrong: {out.count(b'step ')} of 40 lines came through"
    if target != "script" and not (place / "finished").exists():
        return "wrong: the script did not go on"
    return ""


def _answer(place: Path) -> dict[str, Any]:
    """What `why` says once nothing runs any more."""
    _wait_until_all_are_gone(place)
    done = subprocess.run([*HOLDFAST, "why", "--json"], cwd=place, capture_output=True, timeout=PATIENCE_S, check=False)
    answer: dict[str, Any] = (
        json.loads(done.stdout) if done.stdout else {"outcome": done.stderr.decode(), "cause": None}
    )
    return answer


def _wait_until_all_are_gone(place: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while _still_there(place) and time.monotonic() < until:
        time.sleep(0.05)


def _still_there(place: Path) -> bool:
    for process in psutil.process_iter(["cwd", "pid"]):
        if process.info["cwd"] == str(place) and process.pid != os.getpid():
            return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--restarts", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.release()}, Python {platform.python_version()}")
    print(" seed  killed     instant   script     ending and record   (* was gone already)")
    problems = 0
    for seed in range(options.seed, options.seed + options.count):
        result = attempt_with_restart(seed) if options.restarts else attempt(seed)
        problems += bool(result.problem)
        print(result, flush=True)
    print(f"{options.count - problems} of {options.count} right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
