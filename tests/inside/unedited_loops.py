"""Runs every loop of `loops_people_write` untouched, then with memory that runs out on purpose; prints what came of it.

`unedited_loops.py NAME…`; one process, since taking over PyTorch's calls cannot be taken back.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import torch

from tests.inside import loops_people_write as loops
from tests.inside.lack_of_memory import Memory, listening, told

torch.set_num_threads(1)
QUIET = {"rescue.ready", "train.phase", "train.begun", "train.device", "train.longest"}


def tried(name: str, whole: Any, rows: int, where: str, rescue: Any) -> dict[str, Any]:
    Memory.allow(rows, where)
    told.clear()
    rescue._said.clear()
    ours = ""
    try:
        losses, weights = loops.run(name)
    except torch.OutOfMemoryError as error:
        ours = "".join(line for line in traceback.format_tb(error.__traceback__) if "holdfast/inside" in line)
        losses, weights = [], whole[1] * float("nan")
    refused = [data["reason"] for kind, data in told if kind == "rescue.refused"]
    return {
        "apart": float((weights - whole[1]).norm() / whole[1].norm()),
        "losses": max((abs(a - b) for a, b in zip(losses, whole[0], strict=False)), default=0.0),
        "same": losses == whole[0] and bool((weights == whole[1]).all()),
        "refusals": Memory.refusals,
        "refused": refused,
        "failed": [data["reason"] for kind, data in told if kind == "inside.failed"],
        "disclosed": [data["text"] for kind, data in told if kind == "rescue.disclosed"],
        "told": sorted({kind for kind, _ in told} - QUIET),
        "our_frames": ours,
    }


def main(names: list[str]) -> None:
    untouched = {name: loops.run(name) for name in names}
    from holdfast.inside.torch import adapter
    from holdfast.inside.torch.loop_rescue import of_process

    recorder = listening()
    adapter.install(recorder)
    rescue = of_process(recorder, torch)
    rescue.errors_possible = lambda: True  # type: ignore[method-assign]  # as on a GPU
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        whole = untouched[name]
        found[name] = {"healthy": tried(name, whole, 10**9, "forward", rescue)}
        for where, rows in (("forward", 7), ("backward", 7), ("forward", 2), ("backward", 3)):
            found[name][f"{where} {rows}"] = tried(name, whole, rows, where, rescue)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:] or list(loops.LOOPS))
