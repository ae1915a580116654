"""Holdfast as its users start it, for the figures."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HOLDFAST = [sys.executable, "-m", "holdfast", "run", "--"]


def figure_of(command: list[str], key: str, shell_tail: str = "") -> float:
    return figures_of(command, shell_tail)[key]


def figures_of(command: list[str], shell_tail: str = "") -> dict[str, float]:
    """Runs a script that prints one JSON line on standard error; returns its figures."""
    with tempfile.TemporaryDirectory() as folder:
        words = subprocess.list2cmdline(command) + shell_tail
        done = subprocess.run(["bash", "-c", words], cwd=folder, stderr=subprocess.PIPE, check=True)
    line = next(line for line in done.stderr.decode().splitlines() if line.startswith("{"))
    return {name: float(value) for name, value in json.loads(line).items()}


def program(name: str) -> str:
    return str(Path(__file__).parent / "programs" / name)
