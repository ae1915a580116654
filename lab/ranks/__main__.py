"""Real torchrun with gloo: each fault on two and four ranks, the right rank and reason named, the job started again and all ranks at
the same weights as a bare run. `python -m lab.ranks [--ranks 2] [FAULT…]`."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRAIN = Path(__file__).with_name("train.py")
PATIENCE_S = 240
ENDS = re.compile(r"rank (\d+) ends with (\S+) after")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
HOLDFAST = [sys.executable, "-m", "holdfast"]
ENVIRONMENT = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "HOLDFAST_REPORT": "off"}


@dataclass(frozen=True)
class Fault:
    name: str
    causes: tuple[str, ...]  # that name it; none: nothing may be said
    survives: bool = True  # started again, it ends with the same weights
    options: tuple[str, ...] = ()
    engine_restarts: int = 0
    apart: float = 0.0  # of the weights' sum, at most
    noticed: bool = False  # in a run that ends by itself


FAULTS = (
    Fault("", ()),
    Fault("killed", ("killed",)),
    Fault("memory", ("container-memory-limit",), apart=1e-6),  # it goes on in micro-batches
    Fault("raises", ("unhandled-exception",), engine_restarts=1),  # Holdfast starts no job again that would raise again
    Fault("stopped", ("collective-timeout", "stopped"), options=("--hang-timeout", "20")),
    Fault("slow", ("straggler",), noticed=True),
    Fault("unequal", ("unequal-batches",), survives=False, options=("--hang-timeout", "30")),
    Fault("ended", ("unequal-batches",), survives=False),
)


@dataclass(frozen=True)
class Ran:
    code: int
    seconds: float
    weights: dict[str, str]  # by rank
    verdict: dict[str, Any]


def run(fault: Fault, ranks: int, *, bare: bool = False, fixed_buckets: bool = True) -> Ran:
    folder = Path(tempfile.mkdtemp(prefix="lab-ranks-"))
    try:
        shutil.copy(TRAIN, folder)
        engine = [*TORCHRUN, f"--nproc-per-node={ranks}", f"--max-restarts={fault.engine_restarts}", "train.py"]
        command = engine if bare else [*HOLDFAST, "run", *fault.options, "--", *engine]
        environment = {**os.environ, **ENVIRONMENT, "FAULT": "" if bare else fault.name}
        environment |= {"FIXED_BUCKETS": "1"} if fixed_buckets else {}
        begun = time.monotonic()
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=PATIENCE_S, check=False, text=True
        )
        seconds = time.monotonic() - begun
        verdict = {} if bare else _why(folder, environment)
        return Ran(done.returncode, seconds, dict(ENDS.findall(done.stdout)), verdict)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _why(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    asked = subprocess.run(
        [*HOLDFAST, "why", "--json"], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )
    return json.loads(asked.stdout)  # type: ignore[no-any-return]


def wrong(fault: Fault, ranks: int, ran: Ran, bare: Ran) -> list[str]:
    """What is not as it should be, in words."""
    verdict, cause = ran.verdict, ran.verdict["cause"]
    if fault.noticed:
        cause = next((one for one in verdict["noticed"] if one["id"] in fault.causes), None)
    found = []
    if not fault.causes and (cause or verdict["noticed"]):
        found.append(f"said of a healthy job: {cause or verdict['noticed'][0]['title']}")
    if fault.causes and (cause is None or cause["id"] not in fault.causes):
        found.append(f"cause {cause and cause['id']}")
    elif cause is not None and not _names(cause, ranks - 1):
        found.append(f"rank {ranks - 1} is not named: {cause['title']}")
    if fault.survives and ran.code != 0:
        found.append(f"exit code {ran.code}")
    if fault.survives and ran.code == 0 and not _same(ran.weights, bare.weights, fault.apart):
        found.append(f"weights {ran.weights.get('0')}, bare {bare.weights.get('0')}")
    if not fault.survives and ran.code == 0:
        found.append("exit code 0")
    return found


def _same(weights: dict[str, str], bare: dict[str, str], apart: float) -> bool:
    if not apart or weights.keys() != bare.keys():
        return weights == bare
    return all(abs(float(weights[rank]) / float(bare[rank]) - 1.0) < apart for rank in bare)


def _names(cause: dict[str, Any], rank: int) -> bool:
    first = " ".join([cause["title"], *(item["text"] for item in cause["evidence"][:2])])
    return re.search(rf"(?i)\brank {rank}\b", first) is not None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.ranks", description=__doc__)
    parser.add_argument("faults", nargs="*", help=f"of {', '.join(one.name or 'healthy' for one in FAULTS)}")
    parser.add_argument("--ranks", type=int, action="append", help="how many (default: 2 and 4)")
    parser.add_argument(
        "--default-buckets",
        action="store_true",
        help="DistributedDataParallel as it is: it orders its buckets anew after the first step of a process",
    )
    options = parser.parse_args()
    fixed = not options.default_buckets
    failed = 0
    for ranks in options.ranks or (2, 4):
        bare = run(FAULTS[0], ranks, bare=True, fixed_buckets=fixed)
        print(f"{ranks} ranks, bare: {bare.seconds:.0f} s, weights {bare.weights}", flush=True)
        for fault in FAULTS:
            if options.faults and (fault.name or "healthy") not in options.faults:
                continue
            ran = run(fault, ranks, fixed_buckets=fixed)
            problems = wrong(fault, ranks, ran, bare)
            failed += bool(problems)
            title = ran.verdict["cause"]["title"] if ran.verdict["cause"] else ran.verdict["outcome"]
            told = "; ".join(problems) or "right" + (", same weights" if fault.survives else "")
            print(f"{ranks} ranks, {fault.name or 'healthy':8} {ran.seconds:4.0f} s  {told}  [{title}]", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
