"""The time of a training step with and without Holdfast around the script: a loop of 10 ms CPU steps."""

from __future__ import annotations

import hashlib
import sys
import time

from bench.holdfast_command import HOLDFAST, figure_of, program
from bench.interleave import interleave

ROUNDS = 30
STEPS = 200


def main() -> None:
    block = str(_block_for(0.010))
    loop = [sys.executable, program("steps.py"), str(STEPS), block]
    compared = interleave(
        lambda: figure_of(loop, "step_ms"), lambda: figure_of([*HOLDFAST, *loop], "step_ms"), rounds=ROUNDS
    )
    print(f"step of a 10 ms CPU loop, ms: {compared}")


def _block_for(seconds: float) -> int:
    """How many bytes this machine hashes in that time."""
    size = 1 << 20
    best = min(_hash_time(size) for _ in range(9))
    return int(size * seconds / best)


def _hash_time(size: int) -> float:
    block = b"x" * size
    begun = time.perf_counter()
    hashlib.sha256(block)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
