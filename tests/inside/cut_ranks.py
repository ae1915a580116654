"""Two ranks under DistributedDataParallel, memory that runs out on one of them or on both: prints what came of each case.

`cut_ranks.py RANK STORE`: two processes with the same file as their store.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from tests.inside.lack_of_memory import Memory, Take, listening, told

STEPS, CUT_FROM, ROWS = 8, 3, 12
RANK = int(sys.argv[1])
WRAPPED: dict[str, dict[str, Any]] = {
    "plain": {},
    "unused": {"find_unused_parameters": True},
    "bucket views": {"gradient_as_bucket_view": True},
    "small buckets": {"bucket_cap_mb": 0.0001},
}


class Net(nn.Module):
    def __init__(self, unused: bool, talks: str) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 16).double(), nn.Linear(16, 1).double()
        self.aside = nn.Linear(3, 3).double() if unused else None
        self.talks = talks

    def forward(self, x: Any) -> Any:
        hidden = torch.tanh(self.first(x))
        hidden = self.last(Take.apply(self.without_mean(hidden, "before")))
        return self.without_mean(hidden, "after")

    def without_mean(self, hidden: Any, when: str) -> Any:
        """Of all ranks; before or after memory runs out."""
        if self.talks != when:
            return hidden
        mean = hidden.detach().mean()
        dist.all_reduce(mean)
        return hidden - mean


def trained(kind: str, cut: tuple[int, ...], where: str, talks: str = "") -> Any:
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(Net(kind == "unused", talks), **WRAPPED[kind])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(10 + RANK)
    Memory.allow(10**9)
    for step in range(STEPS):
        if step == CUT_FROM and RANK in cut:
            Memory.allow(5, where)
        x = torch.randn(ROWS, 6, dtype=torch.float64)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    Memory.allow(10**9)
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def case(kind: str, cut: tuple[int, ...], where: str, whole: Any) -> dict[str, Any]:
    told.clear()
    weights = trained(kind, cut, where)
    return {
        "apart": float((weights - whole).norm() / whole.norm()),
        "pieces": max((data["k"] for name, data in told if name == "rescue.k"), default=1),
        "refused": [data["reason"] for name, data in told if name == "rescue.refused"],
        "failed": [data["reason"] for name, data in told if name == "inside.failed"],
    }


def refused(talks: str, rescue: Any) -> dict[str, Any]:
    told.clear()
    rescue._said.clear()
    error = ""
    try:
        trained("plain", (0, 1), "forward", talks)
    except torch.OutOfMemoryError as caught:
        error = type(caught).__name__
    return {"error": error, "refused": [data["reason"] for name, data in told if name == "rescue.refused"]}


def main() -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(sys.argv[2], 2)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=2, timeout=timedelta(seconds=30))
    untouched = {kind: trained(kind, (), "forward") for kind in WRAPPED}
    from holdfast.inside.torch import adapter
    from holdfast.inside.torch.loop_rescue import of_process

    recorder = listening()
    adapter.install(recorder)
    rescue = of_process(recorder, torch)
    rescue.errors_possible = lambda: True  # type: ignore[method-assign]  # as on a GPU
    found: dict[str, Any] = {}
    for kind, whole in untouched.items():
        found[f"{kind}, healthy"] = case(kind, (), "forward", whole)
        for where in ("forward", "backward"):
            found[f"{kind}, {where}"] = case(kind, (1,), where, whole)
    found["both ranks"] = case("plain", (0, 1), "forward", untouched["plain"])
    for when in ("before", "after"):
        found[f"talks {when}"] = refused(when, rescue)
    print(json.dumps(found), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
