"""Real Ray Train and tf.distribute with two workers on this machine: killed, raising and healthy. `python -m lab.ranks.engines`"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
HOLDFAST = [sys.executable, "-m", "holdfast"]
PATIENCE_S = 200
ENDS = re.compile(r"rank (\d+) ends with (\S+) after")
ENGINES = {"ray": "ray_train.py", "tensorflow": "tensorflow_workers.py"}
EXPECTED = {"": None, "killed": "Rank 1 was killed", "raises": "Rank 1 raised ValueError"}


def run(engine: str, fault: str) -> tuple[bool, str]:
    folder = Path(tempfile.mkdtemp(prefix="lab-"))  # Ray's sockets want a short path
    try:
        shutil.copy(HERE / ENGINES[engine], folder / "train.py")
        environment = {**os.environ, "FAULT": fault, "RAY_AUTH_MODE": "disabled", "HOLDFAST_REPORT": "off"}
        command = [sys.executable, "train.py", *([str(folder / "ray")] if engine == "ray" else [])]
        begun = time.monotonic()
        done = subprocess.run(
            [*HOLDFAST, "run", "--max-restarts", "0", "--", *command],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        took = time.monotonic() - begun
        asked = subprocess.run([*HOLDFAST, "why", "--json"], cwd=folder, capture_output=True, text=True, check=False)
        verdict = json.loads(asked.stdout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    title = verdict["cause"]["title"] if verdict["cause"] else verdict["outcome"]
    expected = EXPECTED[fault]
    if expected is None:
        noticed = [one["title"] for one in verdict["noticed"]]
        right = (
            done.returncode == 0 and verdict["cause"] is None and not noticed and len(ENDS.findall(done.stdout)) == 2
        )
        return right, f"{took:.0f} s, exit code {done.returncode}, [{title}] {noticed or ''}"
    return done.returncode != 0 and title.startswith(expected), f"{took:.0f} s, [{title}]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.ranks.engines", description=__doc__)
    parser.add_argument("engines", nargs="*", choices=[*ENGINES, []])
    failed = 0
    for engine in parser.parse_args().engines or ENGINES:
        for fault in EXPECTED:
            right, told = run(engine, fault)
            failed += not right
            print(f"{engine:10} {fault or 'healthy':8} {'right' if right else 'WRONG'}  {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
