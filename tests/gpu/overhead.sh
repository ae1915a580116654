#!/usr/bin/env bash
# The step's cost on a GPU machine at sizes known to fit an H200 (python -m bench.overhead searches them, which takes longer),
# and of PyTorch on its CPU.
set -uo pipefail
cd "$(dirname "$0")/../.."
. tests/gpu/machine.sh
python3 - <<'PYTHON'
from bench.overhead import KINDS, compare

for kind, size in ((2, (512, 128)), (2, (4096, 3072)), (3, (64, 64)), (3, (4096, 2048)), (1, (112, 80))):
    found = compare(KINDS[kind], size, pairs=6, turns=10)
    print(f"step of {KINDS[kind].title} on {KINDS[kind].device}, ms: {found}", flush=True)
PYTHON
