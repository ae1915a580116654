"""On the CPU: whether a batch fits, seen while its first forward pass runs. There the kernel kills without an error.

What a backward pass will need is saved one tensor after another. Whenever some of that has been added, it is compared
with what the groups and the machine have left; where the rest surely does not fit, the forward pass is given up before
the kernel ends it all. How many rows do fit is then measured on a few of them.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, NamedTuple, Set, Tuple

from ..headroom import Left, left
from ..held_memory import peak_bytes, reset_peak
from ..out_of_memory import give_back
from . import among_ranks
from .batch_function import TRIAL
from .recompute import Call
from .step_undo import aside
from .tensor_nests import tensors_of

LOOK_EVERY_BYTES = 16 << 20
MARGIN_BYTES = 8 << 20
GIVEN = 0.5  # of what is left, to a piece: at 0.75 one of 234 rows took 1.6 times what 84 rows had, each
OUTPUTS = 3  # of the whole batch: what is returned, its gradient, and what a loss makes of it
MEASURED_BYTES = 32 << 20  # of a few rows: less is lost in what the allocator has at hand


class DoesNotFit(BaseException):
    """Out of a forward pass, past whatever the module itself may catch."""

    def __init__(self, room: Left, needed: int) -> None:
        super().__init__("given up before memory runs out")
        self.room, self.needed = room, needed


def can_watch(torch: Any, module: Any) -> bool:
    """TorchScript compiles a scripted part otherwise where what it saves is watched: with `torch.utils.checkpoint` around it, a
    backward pass then finds another number of tensors than the forward pass has saved."""
    hooks = hasattr(torch.autograd.graph, "saved_tensors_hooks")
    return hooks and not any(isinstance(part, torch.jit.ScriptModule) for part in module.modules())


class Saved:
    """What a forward pass saves, in order."""

    def __init__(self, torch: Any, groups: Any, parameters: List[Any]) -> None:
        self._torch, self._groups = torch, groups
        self._gradients = {
            p.untyped_storage().data_ptr(): 0 if p.grad is not None or not p.requires_grad else p.nbytes
            for p in parameters
        }
        self._seen: Set[int] = set()
        self._entries: List[Tuple[int, int]] = []  # bytes that are saved, bytes of a gradient that comes with it
        self._since = 0
        self._sent = among_ranks.sent(torch)
        self.bytes = 0

    @contextlib.contextmanager
    def watching(self, looks: bool = True) -> Iterator[None]:
        self._looks = looks
        with self._torch.autograd.graph.saved_tensors_hooks(self._pack, _unchanged):
            yield

    def _pack(self, tensor: Any) -> Any:
        if tensor.layout is not self._torch.strided:
            return tensor
        storage = tensor.untyped_storage()
        pointer, size = storage.data_ptr(), storage.nbytes()
        if pointer not in self._seen:
            self._seen.add(pointer)
            gradient = self._gradients.get(pointer)
            self._entries.append((size, 0) if gradient is None else (0, gradient))
            if gradient is None:
                self.bytes += size
                self._since += size
                if self._since >= LOOK_EVERY_BYTES and self._looks:
                    self.look()
        return tensor

    def look(self) -> None:
        self._since = 0
        room = left(self._groups)
        if room is not None and room.bytes < self.needed() + MARGIN_BYTES and self._may_stop():
            raise DoesNotFit(room, self.needed())

    def _may_stop(self) -> bool:
        """What other ranks have been asked for cannot be asked for again."""
        return among_ranks.sent(self._torch) == self._sent

    def needed(self) -> int:
        """On top of what is there: a bound from below. Going back, a layer's gradients come with twice the size of what
        it saved, once what later layers saved is gone."""
        most, freed, gradients = 0, 0, 0
        for size, gradient in reversed(self._entries):
            gradients += gradient
            most = max(most, 2 * size + gradients - freed)
            freed += size
        return max(most, sum(self._gradients.values()) - freed)


def _unchanged(tensor: Any) -> Any:
    return tensor


class Measured(NamedTuple):
    bytes_a_row: float
    outputs_a_row: float


def measured(torch: Any, call: Call, groups: Any, few: int) -> Measured:
    """Forward and backward of a few rows, leaving no trace."""
    before = reset_peak()
    with call.traces.unchanged(), aside(call.parameters), torch.enable_grad():
        saved = Saved(torch, groups, call.parameters)
        with saved.watching(looks=False):
            outputs = tensors_of(call.run(TRIAL, 0, few, {}), torch)
        made = sum(tensor.nbytes for tensor in outputs)
        pairs = [(t, torch.zeros_like(t)) for t in outputs if t.requires_grad]
        among_ranks.backward(torch, [one for one, _ in pairs], [other for _, other in pairs], call.parameters)
        highest = peak_bytes()
    gradients = sum(parameter.nbytes for parameter in call.parameters)
    taken = max(0, highest - before - gradients) if before is not None and highest is not None else 0
    return Measured(max(saved.bytes + 2 * made, taken) / few, made / few)


def rows_that_fit(torch: Any, call: Call, groups: Any, at_most: int) -> int:
    """In a piece, by a few rows; then by half as many as those say."""
    few = max(call.least, min(at_most, call.rows // 32))
    found = measured(torch, call, groups, few)
    while few * found.bytes_a_row < MEASURED_BYTES and 2 * few <= min(at_most, call.rows // 8):
        few *= 2
        found = measured(torch, call, groups, few)
    fit = _fitting(call, groups, found, at_most)
    if fit // 2 > few:
        give_back()
        more = measured(torch, call, groups, fit // 2)
        fit = min(fit, _fitting(call, groups, more, at_most))
    return fit


def _fitting(call: Call, groups: Any, found: Measured, at_most: int) -> int:
    give_back()
    room = left(groups)
    if room is None:
        return at_most
    gradients = sum(p.nbytes for p in call.parameters if p.grad is None)
    free = room.bytes - gradients - OUTPUTS * found.outputs_a_row * call.rows - MARGIN_BYTES
    return max(call.least, min(at_most, int(GIVEN * free / max(found.bytes_a_row, 1.0))))
