"""`nvidia-smi` by the names its fields have: `memory.used`, with a dot; `memory-used` and `gpu_utilization` are refused.

`nvidia-smi --help-query-gpu` lists them. Ask for several at once, without header and units, and read it as CSV: `[N/A]` is a value
that the card does not have, and is not zero.

Holdfast without this recipe: it reads the same and more from the driver itself (NVML), records it with the steps of the training, and
tells throttling, ECC errors and a card that others hold.
"""

import csv
import shutil
import subprocess

FIELDS = (
    "index", "name", "memory.used", "memory.total", "utilization.gpu", "temperature.gpu", "power.draw",
    "clocks_throttle_reasons.active",
)  # fmt: skip


def command():
    return ["nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]


def read(text):
    """A dictionary for each card; memory is in MiB."""
    cards = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        values = [None if value.strip("[]").startswith(("N/A", "Not Supported")) else value for value in row]
        cards.append(dict(zip(FIELDS, values, strict=True)))
    return cards


def main():
    if shutil.which("nvidia-smi") is None:
        text = "0, NVIDIA H200, 1024, 143771, 37, 41, [N/A], 0x0000000000000001\n"
        return {"asked": False, "cards": read(text)}
    done = subprocess.run(command(), capture_output=True, text=True, check=True)
    return {"asked": True, "cards": read(done.stdout)}


if __name__ == "__main__":
    print(main())
