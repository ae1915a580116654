"""Prints text at a fixed rate (MB/s) for some seconds; prints what it reached."""

import json
import sys
import time

rate, seconds = float(sys.argv[1]) * 1e6, float(sys.argv[2])
block = ("x" * 99 + "\n") * 1000
begun = time.perf_counter()
written = 0
while (now := time.perf_counter() - begun) < seconds:
    if written < now * rate:
        sys.stdout.write(block)
        written += len(block)
    else:
        time.sleep(0.0002)
sys.stdout.flush()
print(json.dumps({"mb_per_s": written / 1e6 / (time.perf_counter() - begun)}), file=sys.stderr)
