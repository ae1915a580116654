"""Does a job that gives way to the person at the terminal lose anything while it is alone? `python -m bench.turn [PAIRS]`

The same job at a pty, with its turn changed and without, in turns. A pair in which others took more than a tenth of a
processor says nothing and is left out: against others the job is meant to lose.
"""

from __future__ import annotations

import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What marks a container is ours to say here: with a mark that is there the job's turn is left alone.
STARTED = "import sys; from holdfast.supervisor import launch_context; launch_context.MARKS = (sys.argv.pop(1),); launch_context.CONTAINED = ('/nowhere',); from holdfast.cli import main; sys.exit(main())"  # fmt: skip
CHANGED, LEFT_ALONE = "not/there", "proc/version"
MOST_BY_OTHERS = 0.1
JOB = """
import json, multiprocessing, os, time
def busy():
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
def spin(_):
    began, total = time.process_time(), 0
    for number in range(30_000_000):
        total += number * number
    return time.process_time() - began
if __name__ == "__main__":
    count = os.cpu_count()
    with multiprocessing.Pool(count) as pool:
        pool.map(abs, range(count))
        time.sleep(2)  # Holdfast itself has started by then
        before, began = busy(), time.monotonic()
        cpu_s = sum(pool.map(spin, range(count), 1))
        took_s = time.monotonic() - began
    others = (busy() - before - cpu_s) / took_s
    json.dump({"took_s": took_s, "others": others, "nice": os.getpriority(os.PRIO_PROCESS, 0)}, open("told.json", "w"))
"""


def run(mark: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "job.py").write_text(JOB)
        ours, theirs = pty.openpty()
        os.set_blocking(ours, False)
        command = [sys.executable, "-c", STARTED, mark, "run", "--", sys.executable, "job.py"]
        process = subprocess.Popen(
            command, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        while process.poll() is None:
            time.sleep(0.05)
            try:
                os.read(ours, 1 << 16)
            except OSError:
                continue
        os.close(ours)
        os.close(theirs)
        told: dict[str, float] = json.loads((Path(place) / "told.json").read_text())
        return told


def main() -> None:
    ratios, wanted, tried = [], int(sys.argv[1]) if sys.argv[1:] else 7, 0
    while len(ratios) < wanted and tried < 3 * wanted:
        order = (CHANGED, LEFT_ALONE) if tried % 2 else (LEFT_ALONE, CHANGED)
        told = {mark: run(mark) for mark in order}
        tried += 1
        assert told[CHANGED]["nice"] == 5 and told[LEFT_ALONE]["nice"] == 0, told
        if max(one["others"] for one in told.values()) <= MOST_BY_OTHERS:
            ratios.append(told[CHANGED]["took_s"] / told[LEFT_ALONE]["took_s"])
    if not ratios:
        sys.exit(f"others were at work in all {tried} pairs: nothing can be said")
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
    print(
        f"time with its turn changed / as it is: {statistics.median(ratios):.3f} ({spread}, {len(ratios)} of {tried} pairs)"
    )


if __name__ == "__main__":
    main()
