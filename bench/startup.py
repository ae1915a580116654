"""What `holdfast run` adds to a command that does nothing, and until its first line is out."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from bench.holdfast_command import HOLDFAST
from bench.interleave import interleave


def _until_first_byte(command: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(1)
        seconds = time.perf_counter() - begun
        process.communicate()
    return seconds * 1000


def _until_over(command: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    hello = [sys.executable, "-c", "print(1, flush=True)"]
    for what, measure in (("first line, ms", _until_first_byte), ("whole run, ms", _until_over)):
        compared = interleave(lambda m=measure: m(hello), lambda m=measure: m([*HOLDFAST, *hello]), rounds=20)
        added = sorted(ours - bare for bare, ours in zip(compared.bare, compared.ours, strict=True))
        print(f"start-up, {what}: {compared}; added: {added[len(added) // 2]:.0f} ms")


if __name__ == "__main__":
    main()
