"""Prints a lot: lines of text, or one single line. Prints how long that took."""

import json
import sys
import time

kind, size = sys.argv[1], int(sys.argv[2])
text = "x" * 99 + "\n" if kind == "lines" else "x" * size + "\n"
begun = time.perf_counter()
for _ in range(size // len(text) or 1):
    sys.stdout.write(text)
sys.stdout.flush()
print(json.dumps({"seconds": time.perf_counter() - begun}), file=sys.stderr)
