"""PyTorch's objects in a script's variables: which belong to its state, and how each is taken and put back."""

from __future__ import annotations

import sys
from typing import Any, List, Set, Tuple

from ..script_state.data_position import SOURCE
from ..script_state.object_graph import Graph, Kind, Node, Traits, is_users, type_name
from ..script_state.object_restore import Missing, Restoration
from ..script_state.refusal import BetweenPasses, CannotPutBack, CannotTake
from . import seams, trainer_objects
from .dataset_likeness import is_kept, is_redrawn
from .tensor_store import Saved, TensorStore

LOADER_PARTS = ("generator", "sampler", "batch_sampler", "dataset")
GRAPH_LOOKED_AT = 200  # nodes


class TorchKinds:
    """For one checkpoint: taken into `store`, or put back from `saved`."""

    def __init__(self, torch: Any, store: Any = None, saved: Any = None) -> None:
        self._torch = torch
        self._store: TensorStore = store
        self._saved: Saved = saved
        data = seams.loader_module()
        self._loader_class, self._iterator_class = data.DataLoader, seams.loader_iterator_class()
        self._dataset_class, self._sampler_class = data.Dataset, data.Sampler
        stateful = [torch.nn.Module, torch.optim.Optimizer, self._loader_class, self._sampler_class]
        stateful += [*seams.scheduler_classes(), seams.scaler_class()]
        averaged: Any = sys.modules.get("torch.optim.swa_utils")
        stateful += [getattr(averaged, "SWALR", None)]
        self._subset_class: Any = torch.utils.data.Subset
        stateful += [self._subset_class]
        self._stateful = tuple(one for one in stateful if one is not None)

    def kinds(self) -> List[Kind]:
        torch = self._torch
        values = (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format)

        def nothing(_node: Node, _live: Any, _restoration: Any) -> None:
            return None

        return [
            Kind("torch_value", lambda one: isinstance(one, values), _take_value, _same_value, _value, nothing),
            Kind("tensor", lambda one: isinstance(one, torch.Tensor), self._take, self._fits, self._make, self._fill),
            Kind("generator", lambda one: isinstance(one, torch.Generator), _take_generator, _same_device,
                 self._make_generator, self._fill_generator),
            Kind("loader_iterator", lambda one: isinstance(one, self._iterator_class), _take_iterator,
                 lambda _node, _live: True, _no_iterator, nothing, _source_of_iterator),
        ]  # fmt: skip

    def traits(self) -> Traits:
        return Traits(self._holds_state, self._is_skipped, self._made)

    def _holds_state(self, value: Any) -> bool:
        """Also what libraries build on PyTorch: averages of weights, metrics, trainers."""
        stateful = isinstance(value, self._stateful) or hasattr(type(value), "load_state_dict")
        return stateful or trainer_objects.is_kept(value) or is_kept(value)

    def _made(self, kind: Any) -> Any:
        if not trainer_objects.can_be_made(kind):
            raise Missing(f"{kind.__module__}.{kind.__qualname__}")
        made = kind.__new__(kind)
        if issubclass(kind, self._torch.nn.Module):
            self._torch.nn.Module.__init__(made)
            seams.begin_module(made)
        elif issubclass(kind, self._torch.optim.Optimizer):
            made.__setstate__({"defaults": {}, "state": {}, "param_groups": []})
        return made

    def _is_skipped(self, owner: Any, name: str, value: Any) -> bool:
        if name.startswith("_holdfast") or trainer_objects.is_skipped(owner, name, value):
            return True
        if seams.is_wrapped_loader(owner):
            return False
        if isinstance(owner, (self._torch.nn.Module, self._torch.optim.Optimizer)) and seams.HOOKS in name:
            return True
        if isinstance(owner, self._loader_class):
            return name not in LOADER_PARTS or (name == "dataset" and not self._is_kept_dataset(value))
        if isinstance(owner, self._subset_class):
            return name == "dataset" and not self._is_kept_dataset(value)
        if isinstance(owner, self._dataset_class):
            return not (trainer_objects.is_small(value) or is_redrawn(owner, name, value) or is_kept(owner))
        return isinstance(owner, self._sampler_class) and isinstance(value, self._dataset_class)

    def _is_kept_dataset(self, value: Any) -> bool:
        """Which rows a subset has may have been drawn from the operating system's random numbers."""
        return is_users(type(value)) or isinstance(value, self._subset_class) or is_kept(value)

    def check_layers(self, restoration: Restoration) -> None:
        """A model that was built otherwise is not turned into the saved one."""
        for number, live in restoration.bound.items():
            if isinstance(live, self._torch.nn.Module):
                attributes = restoration.nodes[number].parts[0]
                for name in seams.LAYERS:
                    saved = restoration.keys_of(attributes[name]) if name in attributes else list(vars(live)[name])
                    if saved != list(vars(live)[name]):
                        words = f"{saved} was saved, this process has {list(vars(live)[name])}"
                        raise CannotPutBack(f"the parts of {type(live).__name__} differ: {words}")

    # -- tensors

    def _take(self, tensor: Any, graph: Graph) -> Tuple[Any, Any]:
        torch = self._torch
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
        if not plain or tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
            raise CannotTake(f"a tensor of the kind {type(tensor).__name__}, {tensor.layout}")
        if tensor.grad_fn is not None and not is_spent(tensor):
            raise BetweenPasses("a variable holds a tensor whose graph is still to be run backward")
        entry, place = self._store.add(tensor)
        needs_grad = bool(tensor.requires_grad and tensor.is_leaf)
        if needs_grad and tensor.grad is not None:
            self._store.gradients.append((graph.numbers[id(tensor)], tensor, tensor.grad))
        of = (type_name(type(tensor)), tuple(tensor.shape), str(tensor.dtype), str(tensor.device), needs_grad)
        return of, (entry, place)

    def _fits(self, node: Node, live: Any) -> bool:
        same = (tuple(live.shape), str(live.dtype), str(live.device)) == node.of[1:4]
        if not same and type(live) is self._torch.nn.Parameter:
            saved, now = (
                f"{node.of[1]} {node.of[2]} on {node.of[3]}",
                f"{tuple(live.shape)} {live.dtype} on {live.device}",
            )
            raise CannotPutBack(f"weights of {saved} were saved, this process has {now}")
        fits = same and live.grad_fn is None and not _overlaps(live)
        if fits:
            self._saved.storages.setdefault(node.parts[1][0], live)
        return fits

    def _make(self, node: Node, _restoration: Any) -> Any:
        torch, (_, (number, size, offset, stride)) = self._torch, node.parts
        of_type, shape, dtype, device, needs_grad = node.of
        kind = getattr(torch, dtype.split(".")[-1])
        base = self._saved.storages.get(number)
        if base is None or base.untyped_storage().nbytes() != size:
            base = torch.empty(size, dtype=torch.uint8, device=device)
            self._saved.storages[number] = base
        made = torch.empty(0, dtype=kind, device=device).set_(base.untyped_storage(), offset, shape, stride)
        return torch.nn.Parameter(made, needs_grad) if of_type[1] == "Parameter" else made.requires_grad_(needs_grad)

    def _fill(self, node: Node, live: Any, _restoration: Restoration) -> None:
        with self._torch.no_grad():
            live.copy_(self._saved.elements(node.parts[0]))
        if live.requires_grad != node.of[4]:
            live.requires_grad_(node.of[4])
        live.grad = None

    # -- random generators

    def _make_generator(self, node: Node, _restoration: Any) -> Any:
        return self._torch.Generator(device=node.of[1])

    def _fill_generator(self, node: Node, live: Any, _restoration: Any) -> None:
        live.set_state(self._torch.frombuffer(bytearray(node.parts), dtype=self._torch.uint8))


def is_spent(tensor: Any) -> bool:
    """A backward pass went through its graph: what some node had saved is freed, so that only its value can be used.

    Depth first, since a metric's own nodes, on top of the model's, are never run backward themselves.
    """
    seen: Set[Any] = set()
    todo = [tensor.grad_fn]
    while todo and len(seen) < GRAPH_LOOKED_AT:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for name in (one for one in dir(node) if one.startswith(seams.SAVED_TENSORS) or one == "saved_tensors"):
            try:
                getattr(node, name)
            except RuntimeError:
                return True
        todo += [one for one, _ in node.next_functions]
    return False


def _overlaps(tensor: Any) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape))


def _take_value(value: Any, _graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)),), value


def _same_value(_node: Node, _live: Any) -> bool:
    return False


def _value(node: Node, _restoration: Any) -> Any:
    return node.parts


def _take_generator(value: Any, _graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)), str(value.device)), value.get_state().numpy().tobytes()


def _same_device(node: Node, live: Any) -> bool:
    return bool(str(live.device) == node.of[1])


def _take_iterator(value: Any, graph: Graph) -> Tuple[Any, Any]:
    return (type_name(type(value)),), graph.take(getattr(value, SOURCE, None))


def _source_of_iterator(node: Node, live: Any) -> List[Tuple[Any, Any]]:
    return [(node.parts, getattr(live, SOURCE, None))] if node.parts is not None else []


def _no_iterator(node: Node, _restoration: Any) -> Any:
    raise CannotPutBack(f"a variable held an iterator ({node.of[0][1]}) that this process has not made")
