"""Numbers of a look, read together: at once on the CPU, on a GPU when it is done with them; never a sync."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

Finish = Callable[[List[float]], None]


class LateVectors:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._waiting: List[Tuple[Any, Any, Finish]] = []

    def read(self, scalars: List[Any], finish: Finish) -> None:
        """`scalars`: tensors of any shape on one device; `finish` gets all their numbers in one list."""
        torch = self._torch
        with torch.no_grad():
            vector = torch.cat([each.detach().reshape(-1).to(torch.float32) for each in scalars])
        if vector.device.type == "cpu":
            finish(vector.tolist())
            return
        if vector.device.type != "cuda" or torch.cuda.is_current_stream_capturing():
            return
        with torch.cuda.device(vector.device):
            copy = vector.to("cpu", non_blocking=True)
            done = torch.cuda.Event()
            done.record()
        self._waiting.append((copy, done, finish))

    def look(self, _moment: float) -> None:
        while self._waiting and self._waiting[0][1].query():
            copy, _, finish = self._waiting.pop(0)
            finish(copy.tolist())
