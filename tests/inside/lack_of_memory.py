"""A lack of memory on purpose: more rows at once than are allowed, in the forward pass or in the middle of backward."""

from __future__ import annotations

from typing import Any

import torch

from holdfast.inside import never_raise
from holdfast.inside.telemetry import Recorder

told: list[tuple[str, dict[str, Any]]] = []


class Memory:
    rows, where, refusals, passes = 10**9, "backward", 0, 0
    spare = 0  # passes that go through whatever they take

    @classmethod
    def allow(cls, rows: int, where: str = "backward") -> None:
        cls.rows, cls.where, cls.refusals, cls.passes = rows, where, 0, 0

    @classmethod
    def take(cls, rows: int, where: str) -> None:
        if where != cls.where:
            return
        cls.passes += 1
        if rows > cls.rows and cls.passes > cls.spare:
            cls.refusals += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


class Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Memory.take(x.shape[0], "forward")
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        Memory.take(gradient.shape[0], "backward")
        return gradient


class Ring:
    def text(self, kind: str, _at: float, **data: Any) -> None:
        told.append((kind, data))

    def step(self, *_: Any) -> None:
        pass

    value = step

    def command(self) -> None:
        return None


def said(kind: str) -> list[str]:
    return [str(data.get("reason") or data.get("text") or data) for name, data in told if name == kind]


def listening() -> Recorder:
    """Under `protect`; what it tells is in `told`."""
    never_raise.on_failure(lambda place, reason: told.append(("inside.failed", {"reason": f"{place} {reason}"})))
    return Recorder(Ring(), {"policy": "protect", "rescue": {"k": None}})  # type: ignore[arg-type]
