"""`python -m lab.pairs first`, `python -m lab.pairs second k03 t01`: runs the pairs under `holdfast run` and counts. Where a mended
script prints its weights, it is run bare as well, and they must be the same to the last bit."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SIDES = re.compile(r"\{\{(.*?)\|\|\|(.*?)\}\}", re.DOTALL)
LIMIT_S = 300
WEIGHTS = re.compile(r"^weights: (\w+)$", re.MULTILINE)
HEALTHY = ("nothing",)  # is expected of a script that only looks odd: it has one side


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
    same: bool | None  # the mended one's weights, without and with Holdfast; None where it prints none

    @property
    def right(self) -> bool:
        return bool(self.buggy) and self.buggy[0][0] in self.pair.expected

    def line(self) -> str:
        mended = "silent" if not self.mended else f"false alarm: {_listed(self.mended)}"
        mended += {True: ", same weights", False: ", OTHER WEIGHTS", None: ""}[self.same]
        if self.pair.expected == HEALTHY:
            return f"{self.pair.name:36} healthy: {mended}"
        verdict = "right" if self.right else "wrong" if self.buggy else "not noticed"
        told = _listed(self.buggy) or "nothing"
        return (
            f"{self.pair.name:36} {verdict:12} expected {' | '.join(self.pair.expected)}; told {told}; mended: {mended}"
        )


def _listed(causes: tuple[tuple[str, float], ...]) -> str:
    return ", ".join(f"{cause} {confidence:.2f}" for cause, confidence in causes)


def told_about(pair: Pair, keep: Path | None) -> Told:
    buggy = () if pair.expected == HEALTHY else under_holdfast(pair, 1, keep)[0]
    mended, weights = under_holdfast(pair, 2, keep)
    with tempfile.TemporaryDirectory() as folder:
        same = weights == _run(pair.side(2), folder, []) if weights else None
    return Told(pair, buggy, mended, same)


def under_holdfast(pair: Pair, side: int, keep: Path | None) -> tuple[tuple[tuple[str, float], ...], str]:
    """What was told of it, and the weights it printed."""
    holdfast = [sys.executable, "-m", "holdfast"]
    with tempfile.TemporaryDirectory() as folder:
        weights = _run(pair.side(side), folder, [*holdfast, "run", "--checkpoint", "off"])
        why = subprocess.run(
            [*holdfast, "why", "--json"], cwd=folder, env=_environment(folder), capture_output=True, check=False
        )
        if keep is not None:
            shutil.copytree(folder, keep / f"{pair.name}-{side}", dirs_exist_ok=True)
            Path(keep, f"{pair.name}-{side}", "why.json").write_bytes(why.stdout)
    answer = json.loads(why.stdout)
    causes = ([answer["cause"]] if answer["cause"] else []) + answer["noticed"]
    return tuple((cause["id"], cause["confidence"]) for cause in causes), weights


def _run(script: str, folder: str, under: list[str]) -> str:
    Path(folder, "train.py").write_text(script)
    limited = ["timeout", "-k", "5", str(LIMIT_S), *under, sys.executable, "train.py"]
    with Path(folder, "printed.txt").open("wb") as printed:
        subprocess.run(
            limited, cwd=folder, env=_environment(folder), stdout=printed, stderr=subprocess.STDOUT, check=False
        )
    found = WEIGHTS.search(Path(folder, "printed.txt").read_text(errors="replace"))
    return found.group(1) if found else ""


def _environment(folder: str) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_DIR": str(Path(folder, "record")), "TF_CPP_MIN_LOG_LEVEL": "2"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.pairs", description=__doc__)
    parser.add_argument("set", choices=[path.name for path in sorted(HERE.iterdir()) if any(path.glob("*.pair"))])
    parser.add_argument("names", nargs="*", metavar="NAME", help="pairs whose names begin so (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="scripts that run side by side (default: 2)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what was printed, recorded and told there")
    options = parser.parse_args()
    pairs = [Pair.of(path) for path in sorted((HERE / options.set).glob("*.pair"))]
    pairs = [one for one in pairs if not options.names or one.name.startswith(tuple(options.names))]
    results = []
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for result in pool.map(lambda one: told_about(one, options.keep), pairs):
            print(result.line(), flush=True)
            results.append(result)
    sick = [one for one in results if one.pair.expected != HEALTHY]
    noticed, right = sum(bool(one.buggy) for one in sick), sum(one.right for one in sick)
    alarms = sum(bool(one.mended) for one in results)
    print(f"noticed {noticed}, right {right} of {len(sick)}; false alarms on the mended {alarms} of {len(results)}")
    compared = [one.same for one in results if one.same is not None]
    if compared:
        print(f"the same weights as bare: {sum(compared)} of {len(compared)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
