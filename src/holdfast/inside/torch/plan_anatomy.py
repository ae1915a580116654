"""What a step in PyTorch is made of: weights, gradients, the optimizer's state, and what each module saves for its backward pass."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set

from ..plan.gauges import Card
from ..plan.rounds import Anatomy
from .tensor_nests import tensors_of

OUTSIDE = "(outside of any module: the loss and what the loop computes)"


class TorchAnatomy(Anatomy):
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._looks = False
        self._hooks: Any = None
        self._stack: List[Any] = []
        self._names: Dict[int, str] = {}
        self._outermost: Dict[int, Any] = {}
        self._optimizers: Dict[int, Any] = {}
        self._seen: Set[int] = set()
        self._saved: Dict[str, int] = {}
        self._most: Dict[str, int] = {}  # of the backward pass that had the most to hold
        self._known: Set[int] = set()  # storages of parameters and of the batch: held anyway
        self._gradients = self._state = self._rows = self._largest = 0
        self.batch: Any = None
        self.batch_bytes = 0
        self.on_card = False

    # -- of each step

    def start_over(self) -> None:
        """As in a new process: there an optimizer's state is made after the first backward pass, among what that has left in
        glibc's heap. A dense net of 1536 rows took 45 MiB more than one whose state was there before."""
        for optimizer in self._optimizers.values():
            optimizer.state.clear()
        for parameter in self._trained():
            parameter.grad = None

    def begin(self) -> None:
        self._seen, self._saved, self._most, self._largest = set(), {}, {}, 0
        self._looks = True
        self._hooks = self._torch.autograd.graph.saved_tensors_hooks(self._pack, _unchanged)
        self._hooks.__enter__()

    def end(self) -> None:
        self._looks = False
        if self._hooks is not None:
            with contextlib.suppress(RuntimeError):  # a script that has pushed hooks of its own meanwhile
                self._hooks.__exit__(None, None, None)
            self._hooks = None
        self._stack.clear()

    def backward_begins(self) -> None:
        if sum(self._saved.values()) > sum(self._most.values()):
            self._most = self._saved
        self._saved, self._seen = {}, set()

    def before_update(self, optimizer: Any) -> None:
        self._optimizers[id(optimizer)] = optimizer
        grads = (p.grad for p in self._trained() if p.grad is not None)
        self._gradients = max(self._gradients, _bytes_of(grads))

    def after_update(self) -> None:
        tensors = (tensor for o in self._optimizers.values() for tensor in tensors_of(dict(o.state), self._torch))
        self._state = max(self._state, _bytes_of(tensors))

    def facts(self) -> Dict[str, Any]:
        layers = sorted(self._most.items(), key=lambda pair: -pair[1])
        return {
            "framework": "torch", "rows": self._rows, "weights": self._weights(), "gradients": self._gradients,
            "optimizer": self._state, "activations": sum(self._most.values()), "batch_bytes": self.batch_bytes,
            "largest_block": self._largest,
            "layers": [{"name": name, "bytes": size} for name, size in layers[:10]],
            "optimizers": sorted({type(o).__name__ for o in self._optimizers.values()}),
            "layer_weights": self._weights_by_layer(), "half": self._is_half(),
        }  # fmt: skip

    # -- modules

    def follow_modules(self) -> List[Any]:
        module: Any = sys.modules["torch.nn.modules.module"]
        return [
            module.register_module_forward_pre_hook(self._enters),
            module.register_module_forward_hook(self._leaves),
        ]

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        hooks = self.follow_modules()
        try:
            yield
        finally:
            self.end()
            for hook in hooks:
                hook.remove()

    def _enters(self, module: Any, args: Any) -> None:
        if not self._looks or not self._torch.is_grad_enabled():
            return
        if not self._stack:
            self._is_outermost(module, args)
        self._stack.append(module)

    def _leaves(self, module: Any, _args: Any, _output: Any) -> None:
        if self._stack and module in self._stack[-1:]:
            self._stack.pop()
        elif self._stack:
            self._stack.clear()  # one of them ended in an error that was caught

    def _is_outermost(self, module: Any, args: Any) -> None:
        if id(module) not in self._outermost:
            self._outermost[id(module)] = module
            top = type(module).__name__
            for name, each in module.named_modules():
                self._names.setdefault(id(each), f"{name} ({type(each).__name__})" if name else top)
            for parameter in module.parameters():
                self._known.add(parameter.untyped_storage().data_ptr())
                self.on_card = self.on_card or parameter.is_cuda
        if not self._rows:
            self._rows = _rows(args, self._torch)

    # -- saved tensors

    def _pack(self, tensor: Any) -> Any:
        if self._looks and tensor.layout is self._torch.strided:
            storage = tensor.untyped_storage()
            pointer = storage.data_ptr()
            if pointer not in self._seen and pointer not in self._known and pointer not in self._of_batch():
                self._seen.add(pointer)
                name = self._names.get(id(self._stack[-1]), OUTSIDE) if self._stack else OUTSIDE
                self._saved[name] = self._saved.get(name, 0) + storage.nbytes()
                self._largest = max(self._largest, storage.nbytes())
        return tensor

    def _of_batch(self) -> Set[int]:
        if self.batch is not None:
            self._batch_storages = {t.untyped_storage().data_ptr() for t in tensors_of(self.batch, self._torch)}
            self.batch = None
        return getattr(self, "_batch_storages", set())

    # -- what is held

    def _trained(self) -> Iterable[Any]:
        for optimizer in self._optimizers.values():
            for group in optimizer.param_groups:
                yield from group["params"]

    def _weights(self) -> int:
        modules = self._outermost.values()
        held = [t for module in modules for t in (*module.parameters(), *module.buffers())]
        return _bytes_of((*held, *self._trained()))

    def _weights_by_layer(self) -> Dict[str, int]:
        found: Dict[str, int] = {}
        for module in self._outermost.values():
            for each in module.modules():
                size = _bytes_of(each.parameters(recurse=False))
                if size:
                    found[self._names.get(id(each), type(each).__name__)] = size
        return dict(sorted(found.items(), key=lambda pair: -pair[1])[:20])

    def _is_half(self) -> bool:
        """Whether most of it is in half precision already."""
        torch = self._torch
        return any(p.dtype in (torch.float16, torch.bfloat16) for p in self._trained()) or torch.is_autocast_enabled(
            "cpu"
        )


def _unchanged(tensor: Any) -> Any:
    return tensor


def _rows(args: Any, torch: Any) -> int:
    sized = [tensor for tensor in tensors_of(args, torch) if tensor.dim()]
    return int(sized[0].shape[0]) if sized else 0


def _bytes_of(tensors: Iterable[Any]) -> int:
    """A storage that several share counts once."""
    storages: Dict[int, int] = {}
    for tensor in tensors:
        if getattr(tensor, "is_sparse", False):
            whole = tensor.coalesce()
            storages[id(tensor)] = whole.values().nbytes + whole.indices().nbytes
        else:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def card_gauge(torch: Any) -> Optional[Card]:
    """Of the allocator; None without CUDA. The fullest card counts."""
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_available():
        return None

    def devices() -> range:
        return range(cuda.device_count() if cuda.is_initialized() else 0)

    def reset() -> None:
        for device in devices():
            cuda.reset_peak_memory_stats(device)

    def most() -> int:
        return max((int(cuda.max_memory_allocated(device)) for device in devices()), default=0)

    def room() -> Optional[int]:
        """What is free, and what this process has taken already."""
        return min((int(cuda.mem_get_info(d)[0] + cuda.memory_reserved(d)) for d in devices()), default=None)

    return Card(reset, most, room)
