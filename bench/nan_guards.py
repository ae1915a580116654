"""What the frameworks' own guards against NaN cost, and what Holdfast does: `python -m bench.nan_guards`. Each in a process of its own, in turns.

The time of a step with the guard over that without it, on this machine's CPU: the median of the turns, with the least and the most.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any

from bench.holdfast_command import HOLDFAST

TURNS, WARM, STEPS = 7, 1000, 1000  # Holdfast looks at each of the first 500 steps more closely: 40 ms in all
GUARDS = {
    "torch": ("bare", "holdfast run", "torch.autograd.set_detect_anomaly"),
    "keras": ("bare", "holdfast run", "keras.callbacks.TerminateOnNaN", "tf.debugging.enable_check_numerics"),
}
OURS = "holdfast run"
WIDTH, ROWS = 160, 112  # steps of about a millisecond


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.nan_guards", description=__doc__)
    parser.add_argument(
        "--one", nargs=2, metavar=("FRAMEWORK", "GUARD"), help="measure one of them, and print seconds a step"
    )
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--of", choices=tuple(GUARDS), nargs="+", default=tuple(GUARDS), help="default: all")
    options = parser.parse_args()
    if options.one:
        print({"torch": torch_step_s, "keras": keras_step_s}[options.one[0]](options.one[1]))
        return 0
    for framework in options.of:
        guards = GUARDS[framework]
        times: dict[str, list[float]] = {guard: [] for guard in guards}
        for _ in range(options.turns):
            for guard in guards:
                times[guard].append(_measured(framework, guard))
        bare = times["bare"]
        print(f"{framework}: a step takes {median(bare) * 1e3:.2f} ms bare")
        for guard in guards[1:]:
            ratios = sorted(with_it / without for with_it, without in zip(times[guard], bare, strict=True))
            print(f"    {framework}, {guard:38} {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    return 0


def _measured(framework: str, guard: str) -> float:
    command = [sys.executable, "-m", "bench.nan_guards", "--one", framework, guard]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOLDFAST_DIR": folder}
        whole = [*HOLDFAST, *command] if guard == OURS else command
        done = subprocess.run(whole, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout.split()[-1])


def torch_step_s(guard: str) -> float:
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    torch.set_num_threads(1)  # threads that wait for each other on a busy machine take many times as long
    torch.autograd.set_detect_anomaly(guard.startswith("torch."))
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x, y = torch.randn(ROWS, WIDTH), torch.randn(ROWS, 1)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return _timed(lambda count: [step() for _ in range(count)])


def keras_step_s(guard: str) -> float:
    keras: Any = import_module("keras")
    numpy: Any = import_module("numpy")
    tf: Any = import_module("tensorflow")
    if guard.startswith("tf."):
        tf.debugging.enable_check_numerics()
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(4)]
    model = keras.Sequential([keras.Input((WIDTH,)), *layers, keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    random = numpy.random.default_rng(0)
    x, y = random.normal(size=(ROWS * STEPS, WIDTH)).astype("f"), random.normal(size=(ROWS * STEPS, 1)).astype("f")
    guards = [keras.callbacks.TerminateOnNaN()] if "TerminateOnNaN" in guard else []

    def fit(count: int) -> None:
        model.fit(x[: ROWS * count], y[: ROWS * count], batch_size=ROWS, verbose=0, callbacks=guards, shuffle=False)

    return _timed(fit)


def _timed(run: Callable[[int], object]) -> float:
    run(WARM)
    began = time.perf_counter()
    run(STEPS)
    return (time.perf_counter() - began) / STEPS


if __name__ == "__main__":
    sys.exit(main())
