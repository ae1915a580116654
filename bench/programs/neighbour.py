"""Another program on the machine: every 10 ms it touches its memory, opens a file and, now and then, starts a program.

Ends on SIGTERM or after the given seconds; prints one JSON line: how late its turns came.
"""

import json
import mmap
import os
import signal
import sys
import time

PAGE = 4096
EVERY_S = 0.01


def main(seconds: float, mebibytes: int) -> None:
    going = [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    memory = mmap.mmap(-1, mebibytes << 20)
    for at in range(0, len(memory), PAGE):
        memory[at] = 1
    print("ready", flush=True)
    stalls, at, began = [], 0, time.monotonic()
    while going and time.monotonic() - began < seconds:
        before = time.monotonic()
        for _ in range(64):
            at = (at + 97 * PAGE) % len(memory)
            memory[at] = (memory[at] + 1) % 256
        with open(__file__, "rb") as file:
            file.read(PAGE)
        if len(stalls) % 5 == 0:
            child = os.posix_spawn("/bin/true", ["true"], {})
            os.waitpid(child, 0)
        time.sleep(max(0.0, EVERY_S - (time.monotonic() - before)))
        stalls.append(time.monotonic() - before - EVERY_S)
    ordered = sorted(stalls)
    figures = {
        "worst_ms": round(ordered[-1] * 1000, 1),
        "p999_ms": round(ordered[int(0.999 * (len(ordered) - 1))] * 1000, 1),
        "turns": len(ordered),
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
