"""State of a fit on the torch backend: variables, random numbers, loaders."""

from __future__ import annotations

from typing import Any

from ..torch import random_state
from ..torch.loader_position import parts_state, put_parts_state
from . import seams
from .data_position import OF_PYTHON, not_repeated


class TorchState:
    pulls_in_walk = True  # Keras's walk through an epoch pulls the batches
    is_of_tf_data = False

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self._copies: dict[int, Any] = {}  # by the variable's id; used again: fresh pages cost more than the copy

    def why_not(self, _model: Any, adapter: Any = None) -> str:
        return not_repeated(adapter, (*OF_PYTHON, "TorchDataLoaderAdapter"))

    def random_state(self) -> dict[str, Any]:
        return random_state.capture(self.torch)

    def put_random_state(self, state: dict[str, Any]) -> None:
        random_state.restore(self.torch, state)

    # -- variables

    def read(self, variable: Any) -> Any:
        """A copy: an update writes into the tensor."""
        value = seams.value_of(variable).detach()
        copy = self._copies.get(id(variable))
        if copy is None or copy.shape != value.shape or copy.dtype != value.dtype:
            copy = self._copies[id(variable)] = self.torch.empty(value.shape, dtype=value.dtype)
        copy.copy_(value)
        return self._as_array(copy)

    def put(self, variable: Any, archive: Any, name: str, _described: list[Any]) -> None:
        held = seams.value_of(variable)
        array = self.torch.from_numpy(archive[name].copy())
        with self.torch.no_grad():
            held.copy_(array.view(held.dtype) if self._is_brief(held) else array)

    def _is_brief(self, tensor: Any) -> bool:
        """Of a type that NumPy has not: its bits are kept as whole numbers."""
        return tensor.dtype is self.torch.bfloat16

    def _as_array(self, tensor: Any) -> Any:
        return (tensor.view(self.torch.int16) if self._is_brief(tensor) else tensor).numpy()

    # -- data

    def needs_iterator_state(self, _adapter: Any) -> bool:
        return False  # PyTorch's own random state decides on the order, and that is kept

    def pull(self, iterator: Any) -> None:
        next(iterator)

    def loader_state(self, epoch_iterator: Any) -> Any:
        loader = seams.own_loader(epoch_iterator)
        return None if loader is None else parts_state(self.torch, loader)

    def put_loader_state(self, epoch_iterator: Any, state: Any) -> None:
        loader = seams.own_loader(epoch_iterator)
        if loader is not None and state is not None:
            put_parts_state(self.torch, loader, state)

    def iterator_state(self, _iterator: Any) -> Any:
        return None

    def put_iterator_state(self, iterator: Any, state: Any) -> None:
        raise NotImplementedError

    def epoch_iterator(self, model: Any, **given: Any) -> Any:
        return seams.epoch_iterator_class_of("torch")(steps_per_execution=model.steps_per_execution, **given)

    def build(self, model: Any, epoch_iterator: Any) -> None:
        seams.build(model, epoch_iterator)
