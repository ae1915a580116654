"""Two ranks under DistributedDataParallel, one of which gets a batch that is not finite: prints what came of each case.

`nan_ranks.py RANK STORE`: two processes with the same file as their store.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import sys
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from holdfast.inside.telemetry import Recorder
from tests.inside.lack_of_memory import listening, told

STEPS, BAD, ROWS = 12, 5, 8
RANK = int(sys.argv[1])


def network(kind: str) -> Any:
    torch.manual_seed(3)
    norm = nn.BatchNorm1d(16) if kind == "batch norm" else nn.Identity()
    return nn.Sequential(nn.Linear(6, 16), norm, nn.ReLU(), nn.Linear(16, 1))


def trained(
    kind: str, bad: dict[int, int], left_out: tuple[int, ...] = (), steps: int = STEPS, wrapped: bool = True
) -> tuple[Any, Any]:
    """`bad`: by step, the rank whose batch is not finite then. `left_out`: updates that the script leaves out itself."""
    inner = network(kind)
    options: dict[str, Any] = {"gradient_as_bucket_view": True} if kind == "bucket views" else {}
    model = nn.parallel.DistributedDataParallel(inner, **options) if wrapped else inner
    if kind == "own hook":
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(10 + RANK)
    for step in range(1, steps + 1):
        if kind == "batch norm" and bad and step == BAD - 2:
            time.sleep(1.0)  # so that a good state is kept
        x = torch.randn(ROWS, 6)
        target = x.sum(1, keepdim=True)
        if bad.get(step) == RANK:
            x[2, 1] = math.nan
        here = model.no_sync() if kind == "no sync" else contextlib.nullcontext()

        def backward(x: Any = x, target: Any = target) -> Any:
            optimizer.zero_grad()
            loss = (model(x) - target).square().mean()
            loss.backward()
            return loss

        with here:
            if kind == "closure":
                optimizer.step(backward)
                continue
            backward()
        if step not in left_out:
            optimizer.step()
    weights = torch.cat([parameter.detach().flatten() for parameter in inner.parameters()])
    slots = [state["exp_avg"].flatten() for state in optimizer.state.values()]
    buffers = [each.detach().flatten() for each in inner.buffers() if each.is_floating_point()]
    return torch.cat([weights, *slots]), torch.cat(buffers) if buffers else torch.zeros(1)


def both(values: Any) -> bool:
    """Whether they are the same on both ranks, to the last bit."""
    each = [torch.empty_like(values) for _ in range(2)]
    dist.all_gather(each, values)
    return torch.equal(*each)


def case(recorder: Recorder, kind: str, bad: dict[int, int], reference: Any = None, **options: Any) -> dict[str, Any]:
    told.clear()
    gc.collect()  # an optimizer that is still there makes one step with the next
    before = recorder.steps
    weights, buffers = trained(kind, bad, **options)
    events = [data for name, data in told if name == "numerics.non_finite"]
    return {
        "finite": bool(torch.isfinite(weights).all()) and bool(torch.isfinite(buffers).all()),
        "same on both": both(weights),
        "as expected": reference is not None and torch.equal(weights, reference),
        "went on": [(data["step"] - before, data["how"]) for name, data in told if name == "numerics.went_on"],
        "said": [data["text"].partition(" was ")[2] for name, data in told if name == "numerics.went_on"],
        "origins": [(data["step"] - before, data["seen_in"], data["origin"]) for data in events],
        "rows": [data["input"]["rows"] for data in events if "input" in data],
        "failed": [data["reason"] for name, data in told if name == "inside.failed"],
    }


def given_up(recorder: Recorder) -> dict[str, Any]:
    told.clear()
    gc.collect()
    before, error = recorder.steps, ""
    try:
        trained("plain", dict.fromkeys(range(3, STEPS + 1), 1))
    except RuntimeError as caught:
        error = type(caught).__name__
    return {
        "error": error,
        "times": len([name for name, _ in told if name == "numerics.went_on"]),
        "at": [data["step"] - before for name, data in told if name == "numerics.gave_up"],
    }


def main() -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(sys.argv[2], 2)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=2, timeout=timedelta(seconds=30))
    kinds = ("plain", "bucket views", "batch norm", "closure")
    untouched = {kind: trained(kind, {})[0] for kind in kinds}
    without = {kind: trained(kind, {}, (BAD,))[0] for kind in kinds if kind != "closure"}
    without["closure"] = without["plain"]
    from holdfast.inside.torch import adapter

    recorder = listening()
    adapter.install(recorder)
    found: dict[str, Any] = {}
    for kind in kinds:
        found[f"{kind}, healthy"] = case(recorder, kind, {}, untouched[kind])
        for rank in (0, 1):
            found[f"{kind}, rank {rank}"] = case(recorder, kind, {BAD: rank}, without[kind])
    found["late"] = case(recorder, "plain", {650: 0, 680: 1}, steps=700)
    for kind in ("no sync", "own hook"):
        found[kind] = case(recorder, kind, {BAD: 1})
    found["unwrapped"] = case(recorder, "plain", {BAD: 1}, wrapped=False)
    found["every batch"] = given_up(recorder)
    print(json.dumps(found), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
