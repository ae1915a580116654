"""The table of rescues: each script whole, then with 60, 35 and 20 % of what its step needs. Printed as it was measured.

The step's memory is what TensorFlow's allocator held at most in an uncapped run, above what the process held before its
first step. `python -m lab.oom [MODEL …] [--shares 60 35 20]`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.journal import Journal

SCRIPT = Path(__file__).with_name("train.py")
MODELS = ("dense", "dense-weighted", "dense-mixed", "cnn", "lstm", "transformer", "own-step")
PATIENCE_S = 400.0


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("models", nargs="*", default=list(MODELS))
    words.add_argument("--shares", nargs="+", type=int, default=[60, 35, 20])
    asked = words.parse_args()
    bad = 0
    print(f"{'model':16} {'memory':>7} {'budget':>9} {'exit':>5} {'how':28} {'k':>4} {'apart':>9}")
    for model in asked.models:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            held, needed = uncapped(model, place)
            for share in asked.shares:
                row = capped(model, place, held + int(needed * share / 100), share)
                bad += row["exit"] != 0
                print(
                    f"{model:16} {share:5} % {row['budget'] / 2**20:5.0f} MiB {row['exit']:5} {row['how']:28} "
                    f"{row['k']:>4} {row['apart']:>9}",
                    flush=True,
                )
    return 1 if bad else 0


def environment(place: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "HOLDFAST_DIR": str(place / "state"), **more}


def uncapped(model: str, place: Path) -> tuple[int, int]:
    """What the process held before, and what its step needed."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), model, str(place / "whole.npz")],
        env=environment(place, LAB_MEASURE="1"), capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    seen = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("LAB ")]
    return seen[0]["held"], max(one["peak"] for one in seen[1:]) - seen[0]["current"]


def capped(model: str, place: Path, budget: int, share: int) -> dict[str, Any]:
    result = place / f"{share}.npz"
    command = [sys.executable, str(SCRIPT), model, str(result)]
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", "--memory", str(budget), "--name", f"s{share}", "--", *command],
        env=environment(place), cwd=place, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    runs = [path for path in (place / "state" / "runs").iterdir() if path.name.endswith(f"s{share}") and path.is_dir()]
    events = Journal(runs[-1] / "journal").events()
    return {
        "budget": budget,
        "exit": done.returncode,
        "how": how([(event.kind, event.data) for event in events]),
        "k": max([int(e.data["k"]) for e in events if e.kind == "rescue.k" and e.data["where"] == "train"], default=1),
        "apart": apart(place / "whole.npz", result) if result.exists() else "-",
    }


def how(events: list[tuple[str, dict[str, Any]]]) -> str:
    kinds = [kind for kind, _ in events]
    restarts = sum(kind == "attempt.exit" for kind in kinds)
    words = [f"restarted {restarts}"] if restarts else []
    if "rescue.foreseen" in kinds:
        words.append("foreseen")
    if "rescue.caught" in kinds:
        words.append(f"caught {kinds.count('rescue.caught')}")
    if "rescue.refused" in kinds:
        words.append("refused")
    return ", ".join(words) or "not needed"


def apart(whole: Path, other: Path) -> str:
    a, b = np.load(whole), np.load(other)
    assert int(a["iterations"]) == int(b["iterations"]), "optimizer steps"
    return f"{np.linalg.norm(a['weights'] - b['weights']) / np.linalg.norm(a['weights']):.1e}"


if __name__ == "__main__":
    sys.exit(main())
