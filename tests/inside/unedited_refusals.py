"""What is not run in pieces, and what taking over a module's call must not change; prints what came of each."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F

from tests.inside.lack_of_memory import Memory, listening, told
from tests.inside.loops_people_write import Costly, net

FOUND: dict[str, Any] = {}
X, Y = torch.randn(12, 6, dtype=torch.float64), torch.randint(0, 3, (12,))


class AcrossRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = net()

    def forward(self, x: Any) -> Any:
        out = self.body(x)
        return out - out.mean(0)


class Keeps(AcrossRows):
    def forward(self, x: Any) -> Any:
        self.hidden = self.body(x)
        return self.hidden * 2


class InPlace(AcrossRows):
    def forward(self, x: Any) -> Any:
        return self.body(x.mul_(0.5))


class Buffered(AcrossRows):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x: Any) -> Any:
        self.seen += x.mean(0).float()
        return self.body(x)


def hooked() -> nn.Module:
    model = net()
    model[0].register_forward_hook(lambda *_: None)
    return model


def in_parallel() -> nn.Module:
    return nn.DataParallel(net())


def refusal(name: str, make: Callable[[], nn.Module], where: str) -> None:
    torch.manual_seed(1)
    Memory.allow(7, where)
    told.clear()
    model, error = make(), ""
    try:
        F.cross_entropy(model(X.clone()), Y).backward()
    except torch.OutOfMemoryError as failure:
        error = type(failure).__name__
    FOUND[f"{name} {where}"] = {
        "error": error,
        "refused": [data["reason"] for kind, data in told if kind == "rescue.refused"],
        "failed": [data["reason"] for kind, data in told if kind == "inside.failed"],
    }


def frames_of(model: nn.Module) -> list[str]:
    try:
        model(torch.ones(2, 5, dtype=torch.float64))
    except RuntimeError as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return []


def unchanged(before: list[str]) -> None:
    Memory.allow(10**9)
    model = net()
    FOUND["frames"] = [before, frames_of(model)]
    again = pickle.loads(pickle.dumps(model))
    FOUND["pickled"] = bool((again(X) == model(X)).all())
    told.clear()
    plain = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    compiled = torch.compile(plain, backend="eager", fullgraph=True)
    FOUND["compiled"] = bool((compiled(X) == plain(X)).all())
    compiled(X).sum().backward()
    FOUND["compiled told"] = [kind for kind, _ in told if kind in ("inside.failed", "rescue.caught")]
    traced = torch.fx.symbolic_trace(plain)
    FOUND["fx"] = bool((traced(X) == plain(X)).all())
    scripted = torch.jit.trace(plain, X)
    FOUND["jit"] = bool(torch.allclose(scripted(X), plain(X)))
    one = torch.func.vmap(plain)(X)
    FOUND["vmap"] = bool(torch.allclose(one, plain(X)))
    slope = torch.func.grad(lambda weights: torch.func.functional_call(plain, weights, (X,)).sum())(
        dict(plain.named_parameters())
    )
    FOUND["func"] = len(slope)
    with torch.no_grad():
        FOUND["evaluated"] = tuple(plain(X).shape)
    checked = torch.utils.checkpoint.checkpoint(plain, X, use_reentrant=False)
    checked.sum().backward()


def main() -> None:
    torch.set_num_threads(1)
    before = frames_of(net())
    from holdfast.inside.torch import adapter, loop_rescue

    loop_rescue.LoopRescue.errors_possible = lambda _self: True  # type: ignore[method-assign, assignment]
    adapter.install(listening())

    for where in ("forward", "backward"):
        for name, make in (
            ("across rows", AcrossRows), ("keeps", Keeps), ("in place", InPlace), ("buffered", Buffered),
            ("hooked", hooked), ("in parallel", in_parallel),
        ):  # fmt: skip
            refusal(name, make, where)
    unchanged(before)
    FOUND["costly"] = bool(Costly())
    print(json.dumps(FOUND))


if __name__ == "__main__":
    main()
