"""A training job that takes more memory with every step: `leak` slowly, `fast` as fast as memory can be touched.

Saves when Holdfast asks for it, as the part inside does; prints when it began and when it saved.
"""

import sys
import time

import holdfast

MIB = 1 << 20


def main(kind: str) -> None:
    print(f"began {time.time():.3f}", flush=True)
    holdfast.step()
    start = sys.modules.get("holdfast_inside.start")
    recorder = start.recorder() if start is not None else None
    if recorder is not None:
        recorder.on_command("checkpoint", lambda command: (print(f"saved {time.time():.3f}", flush=True), "saved")[1])
    until = time.monotonic() + 2.0
    while time.monotonic() < until:  # healthy at first
        time.sleep(0.02)
        holdfast.step()
    if kind == "calm":  # how late the neighbour is by itself on this machine
        time.sleep(10)
        return
    kept = []
    size, pause_s = (2, 0.02) if kind == "leak" else (8, 0.0)
    while True:
        kept.append(bytearray(b"x") * (size * MIB))
        time.sleep(pause_s)
        holdfast.step()


if __name__ == "__main__":
    main(sys.argv[1])
