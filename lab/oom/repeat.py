"""One case of the container's table many times over: how often it had to be started again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab.oom.runs import PLENTY, Run, apart, train
from lab.oom.table import Row

HEADINGS = ("turn", "model", "memory", "container", "exit", "restarts", "how", "k", "apart")
HOLDFAST_BYTES = 48 << 20  # relay and watcher live in the container, too
MIB = 1 << 20


def container_for(whole: Run, share: int) -> tuple[int, int]:
    """What the step needs above what was held before it, as measured; and a container with that share of it."""
    seen = [json.loads(line[4:]) for line in whole.output.splitlines() if line.startswith("LAB ")]
    held, needed = seen[0]["held"] + HOLDFAST_BYTES, max(one["peak"] for one in seen[1:]) - seen[0]["current"]
    return needed, held + int(needed * share / 100)


def rows(model: str, share: int, turns: int, times: int) -> Iterator[Row]:
    found: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        whole = train(Path(folder), model, times, container=PLENTY, measure=True)
        _, limit = container_for(whole, share)
        for turn in range(1, turns + 1):
            run = train(Path(folder), model, times, container=limit, options=())
            found.append(run)
            cells = (str(turn), model, f"{share} %", f"{limit // MIB} MiB", str(run.exit), str(run.restarts), run.how,
                     str(run.k), apart(whole, run))  # fmt: skip
            yield Row(run.exit == 0 and run.restarts == 0, cells)
            run.result.unlink(missing_ok=True)
    restarted = sum(run.restarts > 0 for run in found)
    print(
        f"{len(found)} runs: {sum(run.exit == 0 for run in found)} finished, {restarted} were started again "
        f"({sum(run.restarts for run in found)} restarts in all)",
        flush=True,
    )
