"""The time of a Keras training step with and without Holdfast: steps of 1 ms and of 10 ms, TensorFlow on the CPU.

Each round is one bare process and one with Holdfast, in random order; the figure is the median from one batch's end to
the next, over 1.5 s after everything is compiled and warm.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.holdfast_command import HOLDFAST, figure_of, program
from bench.interleave import interleave

ROUNDS = 30
STEPS = {1: (64, 64), 10: (400, 256)}  # ms wanted: width of the layers, rows of a batch; on two cores


def main(rounds: int = ROUNDS) -> None:
    for wanted_ms, (width, rows) in STEPS.items():
        bare = [sys.executable, program("keras_steps.py"), str(width), str(rows)]
        ours = [*HOLDFAST, *bare]
        compared = interleave(*(_figure(command) for command in (bare, ours)), rounds=rounds)
        print(f"step of Keras on TensorFlow, about {wanted_ms} ms, ms: {compared}", flush=True)


def _figure(command: list[str]) -> Callable[[], float]:
    return lambda: figure_of(command, "step_ms")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
