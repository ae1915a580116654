"""`python -m lab.pairs first`, `python -m lab.pairs second k03 t01`: runs the pairs under `holdfast run` and counts."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SIDES = re.compile(r"\{\{(.*?)\|\|\|(.*?)\}\}", re.DOTALL)
LIMIT_S = 300


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    expected: tuple[str, ...]
    script: str

    @classmethod
    def of(cls, path: Path) -> Pair:
        first, _, script = path.read_text().partition("\n")
        return cls(path.stem, tuple(first.removeprefix("expected: ").split(" | ")), script)

    def side(self, number: int) -> str:
        return SIDES.sub(lambda found: found.group(number), self.script)


@dataclass(frozen=True, slots=True)
class Told:
    """Causes with their confidence, what ended the run or was noticed first."""

    pair: Pair
    buggy: tuple[tuple[str, float], ...]
    mended: tuple[tuple[str, float], ...]

    @property
    def right(self) -> bool:
        return bool(self.buggy) and self.buggy[0][0] in self.pair.expected

    def line(self) -> str:
        verdict = "right" if self.right else "wrong" if self.buggy else "not noticed"
        told = ", ".join(f"{cause} {confidence:.2f}" for cause, confidence in self.buggy) or "nothing"
        mended = "silent" if not self.mended else f"false alarm: {self.mended[0][0]}"
        return (
            f"{self.pair.name:36} {verdict:12} expected {' | '.join(self.pair.expected)}; told {told}; mended: {mended}"
        )


def told_of(script: str) -> tuple[tuple[str, float], ...]:
    holdfast = [sys.executable, "-m", "holdfast"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(script)
        environment = {**os.environ, "HOLDFAST_DIR": str(Path(folder, "record")), "TF_CPP_MIN_LOG_LEVEL": "2"}
        run = [*holdfast, "run", "--checkpoint", "off", sys.executable, "train.py"]
        limited = ["timeout", "-k", "5", str(LIMIT_S), *run]
        subprocess.run(limited, cwd=folder, env=environment, capture_output=True, check=False)
        why = subprocess.run(
            [*holdfast, "why", "--json"], cwd=folder, env=environment, capture_output=True, check=False
        )
    answer = json.loads(why.stdout)
    causes = ([answer["cause"]] if answer["cause"] else []) + answer["noticed"]
    return tuple((cause["id"], cause["confidence"]) for cause in causes)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.pairs", description=__doc__)
    parser.add_argument("set", choices=[path.name for path in sorted(HERE.iterdir()) if any(path.glob("*.pair"))])
    parser.add_argument("names", nargs="*", metavar="NAME", help="pairs whose names begin so (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="scripts that run side by side (default: 2)")
    options = parser.parse_args()
    pairs = [Pair.of(path) for path in sorted((HERE / options.set).glob("*.pair"))]
    pairs = [one for one in pairs if not options.names or one.name.startswith(tuple(options.names))]
    results = []
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for result in pool.map(lambda one: Told(one, told_of(one.side(1)), told_of(one.side(2))), pairs):
            print(result.line(), flush=True)
            results.append(result)
    noticed, right = sum(bool(one.buggy) for one in results), sum(one.right for one in results)
    alarms = sum(bool(one.mended) for one in results)
    print(f"noticed {noticed}, right {right} of {len(results)}; false alarms on the mended {alarms} of {len(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
