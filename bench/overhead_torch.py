"""The time of a PyTorch training step with and without Holdfast: steps of 1 ms and of 10 ms, on one thread or a GPU.

Each round is one bare process and one with Holdfast, in random order; the figure is the median from one step's end to
the next, over 1.5 s after warming up. `--device cuda` runs it on a GPU, `--rounds N` more or fewer rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from bench.holdfast_command import HOLDFAST, figure_of, program
from bench.interleave import interleave

ROUNDS = 30
# ms wanted: width of the layers, rows of a batch
STEPS = {"cpu": {1: (64, 32), 10: (448, 128)}, "cuda": {1: (512, 128), 10: (8192, 4096)}}


def main(rounds: int = ROUNDS, device: str = "cpu") -> None:
    for wanted_ms, (width, rows) in STEPS[device].items():
        bare = [sys.executable, program("torch_steps.py"), device, str(width), str(rows)]
        compared = interleave(_figure(bare), _figure([*HOLDFAST, *bare]), rounds=rounds)
        print(f"step of PyTorch on {device}, about {wanted_ms} ms, ms: {compared}", flush=True)


def _figure(command: list[str]) -> Callable[[], float]:
    return lambda: figure_of(command, "step_ms")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rounds", type=int, default=ROUNDS)
    words.add_argument("--device", choices=sorted(STEPS), default="cpu")
    asked = words.parse_args()
    main(asked.rounds, asked.device)
