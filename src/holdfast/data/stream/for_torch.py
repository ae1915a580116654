"""The batches as a PyTorch IterableDataset.

Its place in the data is in plain attributes, which the checkpoints of `holdfast run` keep with the loader's position, and which
StatefulDataLoader asks for by `state_dict`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from holdfast.data.stream.dataset import Dataset


class TorchBatches(torch.utils.data.IterableDataset[Any]):
    def __init__(self, data: Dataset) -> None:
        super().__init__()
        self._data = data
        self.epoch = 0  # of the next pass
        self.begins_at = 0  # the batch that it begins with
        self.known_as = data.likeness()
        self._under_way = (0, 0)

    def __len__(self) -> int:
        return len(self._data)

    def set_epoch(self, epoch: int) -> None:
        self.epoch, self.begins_at = epoch, 0

    def __iter__(self) -> Iterator[Any]:
        epoch, first = self.epoch, self.begins_at
        self.epoch, self.begins_at = epoch + 1, 0
        self._under_way = (epoch, first)
        worker = torch.utils.data.get_worker_info()
        if worker is not None:
            # The number of the epoch stays in the parent: what the parent has drawn for this pass stands for it.
            drawn = (worker.seed - worker.id) % (1 << 63)
            return self._given(epoch + drawn, first, worker.id, worker.num_workers)
        return self._given(epoch, first)

    def _given(self, epoch: int, first: int, worker: int = 0, workers: int = 1) -> Iterator[Any]:
        for number, batch in self._data.batches(epoch, first, worker, workers):
            self._under_way = (self._under_way[0], number + 1)
            yield as_tensors(batch)

    def state_dict(self) -> dict[str, Any]:
        epoch, batch = self._under_way
        return {"epoch": epoch, "batch": batch, "data": self.known_as}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._data.restore(state)
        self.epoch, self.begins_at = int(state["epoch"]), int(state["batch"])


def as_tensors(batch: Any) -> Any:
    """Without a copy. Text stays as it is."""
    if isinstance(batch, dict):
        return {name: as_tensors(one) for name, one in batch.items()}
    if isinstance(batch, tuple):
        return tuple(as_tensors(one) for one in batch)
    is_number = isinstance(batch, np.ndarray) and batch.dtype.kind in "biuf"
    return torch.from_numpy(batch) if is_number else batch.tolist()
