"""The newest state known to be good, in host memory: weights, buffers, an optimizer's slots. Never a copy on a device."""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, Optional, Tuple

from ...headroom import left
from ...telemetry import now
from .finite import all_finite, is_float

SHARE = 0.0005  # of the run's time
EVERY_S = 1.0
OF_WHAT_IS_FREE = 0.05
KEPT = 2  # the newest may already be on its way to infinity
FASTEST = 1 << 33  # bytes a second: a state that would take longer than a share of the run so far is not copied yet


class Copy:
    is_whole = True

    def __init__(self, step: int, loss: float, optimizer: Any, modules: List[Any]) -> None:
        self.step, self.loss = step, loss
        self.rate = float(optimizer.param_groups[0].get("lr") or 0.0)  # Adafactor may have none
        self._optimizer = weakref.ref(optimizer)
        tensors: Dict[int, Any] = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        for module in modules:
            tensors.update({id(each): each for each in (*module.parameters(), *module.buffers())})
        self._tensors = [(weakref.ref(each), each.detach().clone()) for each in tensors.values()]
        self._slots = [
            (weakref.ref(p), {key: _copied(value) for key, value in slots.items()})
            for p, slots in optimizer.state.items()
            if isinstance(slots, dict) and hasattr(p, "detach")
        ]

    def put_back(self, torch: Any) -> None:
        with torch.no_grad():
            for found, value in self._tensors:
                tensor = found()
                if tensor is not None:
                    tensor.copy_(value)
        optimizer = self._optimizer()
        if optimizer is None:
            return
        known = {id(p()) for p, _ in self._slots}
        for parameter in [p for p in optimizer.state if id(p) not in known]:
            del optimizer.state[parameter]  # it was made since
        for found, slots in self._slots:
            parameter = found()
            if parameter is not None:
                optimizer.state[parameter] = {key: _copied(value) for key, value in slots.items()}

    def put_back_buffers(self, torch: Any, modules: List[Any]) -> None:
        """Those that are not finite now: a forward pass with bad rows is in the statistics of batch normalisation."""
        values = {id(found()): value for found, value in self._tensors}
        with torch.no_grad():
            for buffer in [each for module in modules for each in module.buffers()]:
                if is_float(torch, buffer) and id(buffer) in values and not all_finite(torch, buffer):
                    buffer.copy_(values[id(buffer)])


class CopyOfBuffers(Copy):
    """Where ranks train together: the weights are what they have in common, and no rank puts them back alone."""

    is_whole = False

    def __init__(self, step: int, modules: List[Any]) -> None:
        self.step = step
        tensors = {id(each): each for module in modules for each in module.buffers()}
        self._tensors = [(weakref.ref(each), each.detach().clone()) for each in tensors.values()]


def _copied(value: Any) -> Any:
    return value.detach().clone() if hasattr(value, "detach") else value


class GoodStates:
    def __init__(self, torch: Any, groups: Any) -> None:
        self._torch, self._groups = torch, groups
        self.copies: List[Copy] = []  # the oldest first
        self._next_at = 0.0
        self.refused = False

    def is_due(self) -> bool:
        return not self.refused and now() >= self._next_at

    def take(self, step: int, loss: float, optimizer: Any, modules: List[Any]) -> None:
        """Before an update, when all is known to be finite."""
        began = now()
        size, on_host = _size(optimizer, modules)
        room = left(self._groups)
        if not on_host or (room is not None and size > OF_WHAT_IS_FREE * room.bytes):
            self.refused = True
            return
        self.copies = [*self.copies[-(KEPT - 1) :], Copy(step, loss, optimizer, modules)]
        self._next_at = now() + max(EVERY_S, (now() - began) / SHARE)

    def take_buffers(self, step: int, modules: List[Any]) -> None:
        """Those of a device are not read."""
        began = now()
        buffers = [each for module in modules for each in module.buffers()]
        if not all(each.is_cpu for each in buffers):
            self.refused = True
            return
        if all(all_finite(self._torch, each) for each in buffers if is_float(self._torch, each)):
            self.copies = [CopyOfBuffers(step, modules)]
        self._next_at = now() + max(EVERY_S, (now() - began) / SHARE)

    def best(self, usual_loss: Optional[float]) -> Optional[Copy]:
        """The newest whose loss was not yet beyond what is usual."""
        whole = [c for c in self.copies if c.is_whole]
        fits = [c for c in whole if usual_loss is None or c.loss <= 10 * abs(usual_loss) + 1e-6]
        return fits[-1] if fits else (whole[0] if whole else None)

    def forget_newer(self, copy: Copy) -> None:
        self.copies = [each for each in self.copies if each.step <= copy.step]


def _size(optimizer: Any, modules: List[Any]) -> Tuple[int, bool]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    parameters += [p for module in modules for p in module.parameters()]
    unique = list({id(p): p for p in parameters}.values())
    return 3 * sum(p.numel() * p.element_size() for p in unique), all(p.device.type == "cpu" for p in unique)
