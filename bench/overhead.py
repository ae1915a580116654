"""The time of a training step with and without Holdfast: steps of about 1 ms and 10 ms of each framework.

A bare process and one under `holdfast run` live side by side and measure in turns of 0.2 s, in random order; while the
bare one measures, Holdfast's own processes are stopped. Several such pairs at once, a turn of each after the other, so that
the luck of a memory layout evens out.

    python -m bench.overhead                      what this machine has, on the CPU
    python -m bench.overhead --on cuda            PyTorch, and Keras on PyTorch, on a GPU
    python -m bench.overhead --on tensorflow-gpu  Keras on TensorFlow on a GPU
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import psutil

from bench.holdfast_command import HOLDFAST, program
from bench.interleave import Comparison

PAIRS, TURNS = 6, 20
ON_TENSORFLOW_GPU = "tensorflow-gpu"
GPU_PAIRS, GPU_TURNS = 3, 14  # TensorFlow and its compiler take half a minute to start there
SEES_A_GPU = "import tensorflow as tf; raise SystemExit(not tf.config.list_physical_devices('GPU'))"
ENDING_S = 60.0
PATIENCE_S = 180.0  # a framework's import and compilation on a loaded machine


@dataclass(frozen=True)
class Kind:
    title: str
    needs: str
    program: str
    device: str
    backend: str
    sizes: tuple[tuple[int, int], ...]  # width of the layers, rows of a batch: from small steps to long ones


SMALL = ((64, 32), (96, 64), (112, 80), (128, 96), (160, 112), (192, 128))
KINDS = (
    Kind("Keras on TensorFlow", "tensorflow", "keras_steps.py", "cpu", "tensorflow",
         ((64, 64), (96, 96), (128, 128), (192, 128), (256, 192), (320, 256), (400, 320), (480, 384), (640, 512), (800, 640))),
    Kind("PyTorch", "torch", "torch_steps.py", "cpu", "",
         (*SMALL, (384, 160), (448, 192), (512, 256), (640, 320), (768, 384))),
    Kind("PyTorch", "torch", "torch_steps.py", "cuda", "",
         ((512, 128), (1024, 1024), (1024, 2048), (1024, 4096), (4096, 1024), (4096, 2048), (4096, 3072), (4096, 4096))),
    Kind("Keras on PyTorch", "torch", "keras_steps.py", "cuda", "torch",
         ((64, 64), (4096, 1024), (4096, 1536), (4096, 2048), (4096, 3072))),
    Kind("Keras on TensorFlow", "tensorflow", "keras_steps.py", ON_TENSORFLOW_GPU, "tensorflow",
         ((64, 64), (1024, 1024), (2048, 2048), (4096, 1024), (4096, 2048), (4096, 4096), (4096, 8192), (8192, 4096))),
)  # fmt: skip


def why_not(on: str) -> str:
    """What is in the way of measuring; nothing where all is well. With HOLDFAST_LAB_TINY=1 a CPU stands for the GPU."""
    if on != ON_TENSORFLOW_GPU or os.environ.get("HOLDFAST_LAB_TINY") == "1":
        return ""
    asked = subprocess.run([sys.executable, "-c", SEES_A_GPU], stderr=subprocess.DEVNULL, check=False)
    return "TensorFlow sees no GPU here" if asked.returncode else ""


def main(on: str = "cpu", wanted: tuple[float, ...] = (1.0, 10.0), pairs: int = PAIRS, turns: int = TURNS) -> None:
    for kind in KINDS:
        if kind.device == on and find_spec(kind.needs) and find_spec("keras" if kind.backend else kind.needs):
            for wanted_ms in wanted:
                size = size_for(kind, wanted_ms)
                print(f"step of {kind.title} on {on}, ms: {compare(kind, size, pairs, turns)}", flush=True)


def size_for(kind: Kind, wanted_ms: float) -> tuple[int, int]:
    """The size whose bare step is nearest to what is wanted, here and now."""
    sizes = SMALL if os.environ.get("HOLDFAST_LAB_TINY") == "1" else kind.sizes
    low, high, took = 0, len(sizes), {}
    while low < high:
        middle = (low + high) // 2
        off = bare_ms(kind, sizes[middle]) / wanted_ms
        took[middle] = max(off, 1 / off)
        low, high = (middle + 1, high) if off < 1 else (low, middle)
    return sizes[min(took, key=lambda index: took[index])]


@functools.cache
def bare_ms(kind: Kind, size: tuple[int, int]) -> float:
    with Trainer(kind, size, bare=True) as trainer:
        return trainer.turn()


def compare(kind: Kind, size: tuple[int, int], pairs: int, turns: int) -> Comparison:
    chance = random.Random(0)
    results: tuple[list[float], list[float]] = ([], [])
    with contextlib.ExitStack() as stack:
        made = [[Trainer(kind, size, bare) for bare in (True, False)] for _ in range(pairs)]  # they start side by side
        ready = [[stack.enter_context(trainer) for trainer in pair] for pair in made]
        for pair in ready * turns:
            both = list(zip(results, pair, strict=True))
            chance.shuffle(both)
            for found, trainer in both:
                found.append(trainer.turn())
    return Comparison(*results)


class Trainer:
    """A training process that measures when it is asked."""

    def __init__(self, kind: Kind, size: tuple[int, int], bare: bool) -> None:
        self._folder = tempfile.TemporaryDirectory()
        paths = [str(Path(self._folder.name) / name) for name in ("ask", "answer")]
        for path in paths:
            os.mkfifo(path)
        self._ask, self._answer = (os.open(path, os.O_RDWR) for path in paths)
        command = [sys.executable, program(kind.program), kind.device, *map(str, size), *paths]
        # Several processes share the card: none may take all of it.
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "true"} | (
            {"KERAS_BACKEND": kind.backend} if kind.backend else {}
        )
        self._process = subprocess.Popen(
            command if bare else [*HOLDFAST, *command],
            cwd=self._folder.name,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._watchers: list[psutil.Process] = []
        self._bare = bare

    def __enter__(self) -> Trainer:
        self.turn()  # compiled, and its processes are all there
        if not self._bare:
            relay = psutil.Process(self._process.pid)
            self._watchers = [relay, *relay.children()]
            self._signal(signal.SIGSTOP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signal(signal.SIGCONT)
        os.close(self._ask)  # nobody asks any more: it ends by itself
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            for process in [*psutil.Process(self._process.pid).children(recursive=True), self._process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
        os.close(self._answer)
        self._folder.cleanup()

    def turn(self) -> float:
        self._signal(signal.SIGCONT)
        os.write(self._ask, b"go\n")
        waited = 0.0
        while not select.select([self._answer], [], [], 1.0)[0]:
            waited += 1.0
            if self._process.poll() is not None or waited > PATIENCE_S:
                raise RuntimeError(f"the training process does not answer (exit {self._process.poll()})")
        answer = float(os.read(self._answer, 100))
        self._signal(signal.SIGSTOP)
        return answer

    def _signal(self, number: int) -> None:
        for process in self._watchers:
            process.send_signal(number)


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--on", choices=("cpu", "cuda", ON_TENSORFLOW_GPU), default="cpu")
    words.add_argument("--wanted", type=float, nargs="+", default=(1.0, 10.0), metavar="MS")
    words.add_argument("--pairs", type=int, help=f"default: {PAIRS}, with TensorFlow on a GPU {GPU_PAIRS}")
    words.add_argument(
        "--turns", type=int, help=f"in each pair, default: {TURNS}, with TensorFlow on a GPU {GPU_TURNS}"
    )
    asked = words.parse_args()
    if unable := why_not(asked.on):
        sys.exit(unable)
    usual = (GPU_PAIRS, GPU_TURNS) if asked.on == ON_TENSORFLOW_GPU else (PAIRS, TURNS)
    main(asked.on, tuple(asked.wanted), asked.pairs or usual[0], asked.turns or usual[1])
