"""The tensors of a checkpoint: found one by one, copied at once into one block of memory, written from there.

A small block is kept for the next checkpoint: see `copied_memory`.
"""

from __future__ import annotations

import threading
from typing import Any, Container, Dict, List, NamedTuple, Optional, Set, Tuple

from ..never_raise import guarded
from ..script_state.refusal import CannotTake, NotPrepared
from . import seams
from .copied_memory import WORTH_WAITING_BYTES, own_memory

FILE = "tensors.bin"
ALIGNED = 64
WORTH_A_THREAD_BYTES = 64 << 10
KEPT_BYTES = 1 << 30


class Entry(NamedTuple):
    """One tensor's elements on disk."""

    begin: int
    bytes: int
    dtype: str
    shape: Tuple[int, ...]


class TensorStore:
    """`unchanged`: tensors, by id, that nothing writes before the next update. They are copied while the loop goes on."""

    def __init__(self, torch: Any, unchanged: Container[int] = ()) -> None:
        self._torch = torch
        self._unchanged = unchanged
        self._later: Set[int] = set()  # entries
        self.entries: List[Entry] = []
        self.total = 0
        self._sources: List[Any] = []
        self._numbers: Dict[Any, int] = {}
        self._storages: Dict[Any, int] = {}
        self.gradients: List[Tuple[int, Any, Any]] = []  # node, parameter, gradient: whether they matter is seen later

    def add(self, tensor: Any) -> Tuple[int, Tuple[int, int, int, Tuple[int, ...]]]:
        """Number of the entry; and storage, its size, and where in it the tensor lies: two may be one in memory."""
        storage = tensor.untyped_storage()
        at = (str(tensor.device), storage.data_ptr() or -1 - id(tensor))
        number = self._storages.setdefault(at, len(self._storages))
        place = (number, storage.nbytes(), int(tensor.storage_offset()), tuple(tensor.stride()))
        key = (place, tuple(tensor.shape), tensor.dtype)
        if key not in self._numbers:
            self._numbers[key] = self._new(tensor)
        return self._numbers[key], place

    def _new(self, tensor: Any) -> int:
        size = tensor.numel() * tensor.element_size()
        if id(tensor) in self._unchanged and size >= WORTH_A_THREAD_BYTES and tensor.device.type == "cpu":
            self._later.add(len(self.entries))
        self.entries.append(Entry(self.total, size, str(tensor.dtype).split(".")[-1], tuple(tensor.shape)))
        self._sources.append(tensor.detach())
        self.total += -(-size // ALIGNED) * ALIGNED
        return len(self.entries) - 1

    def copied(self, block: Optional[Block], may_wait: bool = False) -> Block:
        """`may_wait`: NotPrepared is raised where much memory would have to be touched first."""
        if block is None or block.entries != self.entries:
            memory = block.memory if block is not None and block.memory.numel() >= self.total else None
            if memory is None and may_wait and self.total >= WORTH_WAITING_BYTES:
                raise NotPrepared(self.total)
            block = Block(self._torch, self.entries, self.total, memory)
        block.copy(self._sources, self._later)
        self._sources = []
        return block

    def as_they_are(self) -> Uncopied:
        return Uncopied(self._torch, self.entries, self.total, self._sources)


class Uncopied:
    """Where there is no memory for a copy: training has to wait until it is written."""

    def __init__(self, torch: Any, entries: List[Entry], total: int, sources: List[Any]) -> None:
        self.entries, self.bytes, self._byte = entries, total, torch.uint8
        self._sources = sources

    def write(self, path: str) -> None:
        with open(path, "wb") as file:
            file.truncate(self.bytes)
            for entry, source in zip(self.entries, self._sources):
                file.seek(entry.begin)
                if entry.bytes:
                    flat = source.detach().to("cpu").contiguous().reshape(-1)
                    file.write(memoryview(flat.view(self._byte).numpy()))


class Block:
    def __init__(self, torch: Any, entries: List[Entry], total: int, memory: Any = None) -> None:
        self._torch = torch
        self.entries, self.bytes = entries, total
        self.memory = own_memory(torch, total) if memory is None else memory
        self._parts = [_part(torch, self.memory, entry) for entry in entries]
        self._beside: Optional[CopyBeside] = None

    def copy(self, sources: List[Any], later: Container[int] = ()) -> None:
        self.finish()
        pairs = list(zip(self._parts, sources))
        beside = [pair for number, pair in enumerate(pairs) if number in later]
        if beside:
            self._beside = CopyBeside(self._torch, beside)
        _copy(self._torch, [pair for number, pair in enumerate(pairs) if number not in later])

    def finish(self) -> None:
        """All is copied afterwards. Before anything is written to what was to be copied beside the loop."""
        if self._beside is not None:
            self._beside.thread.join()

    def check(self) -> None:
        self.finish()
        if self._beside is not None and not self._beside.is_right:
            raise CannotTake("an optimizer's state was changed by something else than its step")

    def write(self, path: str) -> None:
        self.check()
        with open(path, "wb") as file:
            file.write(memoryview(self.memory.numpy())[: self.bytes])


class CopyBeside:
    """By a thread. That nothing was written meanwhile is told by the counters that PyTorch keeps of it."""

    def __init__(self, torch: Any, pairs: List[Tuple[Any, Any]]) -> None:
        self._torch, self._pairs = torch, pairs
        self._versions = [seams.version_of(source) for _, source in pairs]
        self.is_right = False
        self.thread = threading.Thread(target=guarded(self._run), name="holdfast-copy", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        _copy(self._torch, self._pairs)
        self.is_right = [seams.version_of(source) for _, source in self._pairs] == self._versions
        self._pairs = []


def _copy(torch: Any, pairs: List[Tuple[Any, Any]]) -> None:
    with torch.no_grad():
        if pairs and all(source.device.type == "cpu" for _, source in pairs):
            seams.copy_all(torch, [source for _, source in pairs], [part for part, _ in pairs])
            return
        for part, source in pairs:
            part.copy_(source)


class Saved:
    """The same, read: elements are mapped, and copied to where they belong."""

    def __init__(self, torch: Any, path: str, entries: List[Entry], total: int) -> None:
        self._torch = torch
        self._entries = entries
        self._memory = torch.from_file(path, shared=False, size=total, dtype=torch.uint8) if total else torch.empty(0)
        self.storages: Dict[int, Any] = {}  # by number in the checkpoint: a tensor of this process that lies in it

    def elements(self, number: int) -> Any:
        return _part(self._torch, self._memory, self._entries[number])


def _part(torch: Any, memory: Any, entry: Entry) -> Any:
    if not entry.bytes:
        return torch.empty(entry.shape, dtype=getattr(torch, entry.dtype))
    piece = memory[entry.begin : entry.begin + entry.bytes]
    return piece.view(getattr(torch, entry.dtype)).view(entry.shape)
