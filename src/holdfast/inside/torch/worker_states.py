"""Random state of workers that persist over epochs: it goes on from epoch to epoch in processes of their own.

Each worker writes what it has when an epoch begins into memory that it shares with the process that trains, 0.1 ms an epoch.
In a process that goes on, the workers are given what theirs had. Only workers that are forked share memory with us.
"""

from __future__ import annotations

import mmap
import pickle
import struct
import zlib
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..never_raise import outcome
from ..script_state.refusal import CannotPutBack, CannotTake
from ..user_errors import passing_on
from . import random_state, seams
from .generator_states import generators_of, put_generators

SLOT = 64 << 10  # of one worker: PyTorch's, Python's and NumPy's state are 11 KiB
ATTRIBUTE = "_holdfast_workers"  # on an iterator whose workers persist
HEAD = struct.Struct("<qqq")  # epoch, length, checksum
NEVER, TOO_LARGE = -1, -2
DRAWS = "draws"


class WorkerStates:
    """Of one iterator's workers. Each has two slots: what it tells, and what it is told to begin an epoch with."""

    def __init__(self, torch: Any, workers: int) -> None:
        self._torch = torch
        self._workers = workers
        self._memory = mmap.mmap(-1, 2 * workers * SLOT)
        self.epoch = 0  # counted where it trains, and in each worker for itself
        self._begun: Dict[str, Any] = {}  # with this a worker's epoch did
        self._draws = False
        for slot in range(2 * workers):
            self._write(slot, NEVER, b"")

    # -- in the process that trains

    def begins_again(self) -> None:
        self.epoch += 1

    def taken(self) -> List[bytes]:
        """As the epoch under way began."""
        return [self._told(worker) for worker in range(self._workers)]

    def check_not_drawing(self) -> None:
        """Of a loader that is between two epochs: what its workers have drawn in the last one is not known."""
        if any(pickle.loads(state)[DRAWS] for state in self.taken()):
            raise CannotTake("workers of another loader, which persist over its epochs, draw random numbers")

    def hand_over(self, states: List[bytes]) -> None:
        """For the next epoch; what has been asked of the workers before is still to come."""
        if len(states) != self._workers:
            raise CannotPutBack("the data is read by another number of workers than before")
        for worker, state in enumerate(states):
            self._write(_handed(worker), self.epoch + 1, state)

    def _told(self, worker: int) -> bytes:
        epoch, state = self._read(2 * worker)
        if epoch == TOO_LARGE:
            raise CannotTake("what workers that persist over epochs need to go on is too large")
        if epoch != self.epoch or not state:
            raise CannotTake("workers that persist over epochs have not begun this one yet")
        return state

    def _read(self, slot: int) -> Tuple[int, bytes]:
        """Nothing while it is being written."""
        epoch, length, check = HEAD.unpack_from(self._memory, slot * SLOT)
        begin = slot * SLOT + HEAD.size
        state = self._memory[begin : begin + length]
        return epoch, state if zlib.crc32(state) == check else b""

    def _write(self, slot: int, epoch: int, state: bytes) -> None:
        if len(state) > SLOT - HEAD.size:
            epoch, state = TOO_LARGE, b""
        begin = slot * SLOT + HEAD.size
        self._memory[begin : begin + len(state)] = state
        HEAD.pack_into(self._memory, slot * SLOT, epoch, len(state), zlib.crc32(state))

    # -- in a worker

    def epoch_begins(self, dataset: Any) -> None:
        worker = self._torch.utils.data.get_worker_info().id
        epoch, handed = self._read(_handed(worker))
        if epoch == self.epoch and handed:
            state = pickle.loads(handed)
            random_state.restore(self._torch, state["random"])
            put_generators(self._torch, dataset, state["generators"])
            self._draws = bool(state[DRAWS])
        self._begun = self._now(dataset)
        self._write(2 * worker, self.epoch, pickle.dumps({**self._begun, DRAWS: self._draws}))
        self.epoch += 1

    def first_given(self, dataset: Any) -> None:
        if not self._draws and pickle.dumps(self._now(dataset)) != pickle.dumps(self._begun):
            self._draws = True
            worker = self._torch.utils.data.get_worker_info().id
            self._write(2 * worker, self.epoch - 1, pickle.dumps({**self._begun, DRAWS: True}))

    def _now(self, dataset: Any) -> Dict[str, Any]:
        return {"random": random_state.capture_of_host(self._torch), "generators": generators_of(self._torch, dataset)}


def _handed(worker: int) -> int:
    return 2 * worker + 1


class _Here:
    forking: Optional[WorkerStates] = None  # in a worker: its own iterator's


def of(loader: Any) -> Optional[WorkerStates]:
    return getattr(seams.kept_iterator(loader), ATTRIBUTE, None)


def hand_over(loader: Any, saved: Optional[List[bytes]]) -> None:
    states = of(loader) if saved else None
    if states is not None and saved is not None:
        states.hand_over(saved)


def followed(torch: Any, iterate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of a loader's `__iter__`: workers that it starts to keep them tell their state."""
    kinds = getattr(seams.loader_module(), seams.FETCHERS, None)
    if hasattr(kinds, "create_fetcher"):
        _follow_workers(kinds)

    def __iter__(loader: Any) -> Any:
        if not loader.persistent_workers or not loader.num_workers:
            return iterate(loader)
        states = of(loader)
        if states is not None:
            states.begins_again()
            return iterate(loader)
        if seams.kept_iterator(loader) is not None or not _forks(torch, loader):
            return iterate(loader)
        states = _Here.forking = WorkerStates(torch, loader.num_workers)
        try:
            iterator = iterate(loader)
        finally:
            _Here.forking = None
        setattr(iterator, ATTRIBUTE, states)
        return iterator

    return __iter__


def _forks(torch: Any, loader: Any) -> bool:
    context = loader.multiprocessing_context or torch.multiprocessing
    return bool(context.get_start_method(allow_none=False) == "fork")


def _follow_workers(kinds: Any) -> None:
    create: Callable[..., Any] = kinds.create_fetcher

    def create_fetcher(kind: Any, dataset: Any, *args: Any) -> Any:
        states = _Here.forking
        if states is not None:
            outcome(states.epoch_begins, dataset)
        fetcher = create(kind, dataset, *args)
        if states is not None:
            fetcher.fetch = passing_on(_first(fetcher, dataset, states))
        return fetcher

    kinds.create_fetcher = staticmethod(create_fetcher)


def _first(fetcher: Any, dataset: Any, states: WorkerStates) -> Callable[[Any], Any]:
    def fetch(indices: Any) -> Any:
        del fetcher.fetch
        batch = fetcher.fetch(indices)
        outcome(states.first_given, dataset)
        return batch

    return fetch
