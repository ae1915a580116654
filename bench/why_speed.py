"""How fast `holdfast why FILE` reads a large log, and in how much memory: python -m bench.why_speed [MEGABYTES]"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WHY = [sys.executable, "-m", "holdfast", "why"]

ENDING = """Traceback (most recent call last):
  File "/home/ada/train.py", line 51, in <module>
    loss = model(batch)
  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)
"""


def write_log(path: Path, megabytes: int) -> None:
    """Progress lines as Keras and loggers print them; the error at the very end."""
    rng = random.Random(1)
    block = "".join(
        f"2026-01-31 12:{i // 60 % 60:02d}:{i % 60:02d},123 - INFO - train - step {i} loss: {rng.random():.6f} - "
        f"mean_absolute_error: {rng.random():.4f} - gpu memory 11.2 GiB - lr 1.0e-03 - 12ms/step\n"
        for i in range(7000)
    ).encode()
    with open(path, "wb") as file:
        for _ in range(megabytes * 1_000_000 // len(block)):
            file.write(block)
        file.write(ENDING.encode())


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        write_log(path, megabytes)
        size = path.stat().st_size / 1e6
        best = float("inf")
        for _ in range(3):
            begun = time.perf_counter()
            done = subprocess.run([*WHY, str(path), "--json"], capture_output=True, check=False)
            best = min(best, time.perf_counter() - begun)
        cause = (json.loads(done.stdout)["cause"] or {}).get("id")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"why, a log of {size:.0f} MB: {best:.1f} s, {size / best:.0f} MB/s, peak {peak:.0f} MiB, answer {cause}")


if __name__ == "__main__":
    main()
