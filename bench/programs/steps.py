"""A loop of equal steps of pure CPU work; prints how long the loop took."""

import hashlib
import json
import sys
import time

steps, block = int(sys.argv[1]), b"x" * int(sys.argv[2])
for _ in range(20):
    hashlib.sha256(block)
begun = time.perf_counter()
for _ in range(steps):
    hashlib.sha256(block)
seconds = time.perf_counter() - begun
print(json.dumps({"step_ms": seconds / steps * 1000}), file=sys.stderr)
