"""What Holdfast costs each of two ranks under torchrun, bare and watched in turn: python -m bench.ranks [PAIRS]"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "ddp_steps.py"
ENGINE = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(PROGRAM)]
WATCHED = [sys.executable, "-m", "holdfast", "run", "--"]
WIDTHS = (256, 1024)
STEP = re.compile(r"rank (\d): ([\d.]+) ms")


def step_ms(width: int, watched: bool) -> dict[str, float]:
    """By rank."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*(WATCHED if watched else []), *ENGINE, str(width)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=True)
    return {rank: float(ms) for rank, ms in STEP.findall(done.stdout)}


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for width in WIDTHS:
        bare: list[dict[str, float]] = []
        watched: list[dict[str, float]] = []
        for pair in range(pairs):
            for first in (False, True) if pair % 2 else (True, False):
                (watched if first else bare).append(step_ms(width, first))
        for rank in sorted(bare[0]):
            ratios = [with_it[rank] / without[rank] for with_it, without in zip(watched, bare, strict=True)]
            plain = statistics.median(one[rank] for one in bare)
            told = f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            print(f"two ranks under torchrun, rank {rank}, a step of {plain:.2f} ms: {told}, {pairs} pairs", flush=True)


if __name__ == "__main__":
    main()
