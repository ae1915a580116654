"""How far each iterator of a DataLoader is, and bringing a new one there.

The order of the data is found by repeating: random state at the iterator's making and at its first batch, the sampler's
own values, batches taken. Where a data set is indexed in this process, only the sampler is gone forward, and what one of
the user's own has drawn is compared. What workers or an iterable data set gave is read again, dropped and compared; a data set that can begin
at any batch (`holdfast.data`) is asked to.
"""

from __future__ import annotations

import pickle
import zlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from ..never_raise import guarded
from ..script_state.data_position import ATTRIBUTE, Position
from ..script_state.object_graph import PLAIN
from ..script_state.refusal import CannotPutBack
from . import random_state, sampler_containers, seams, worker_states
from .dataset_likeness import likeness, same_data
from .generator_states import put_state, state_of
from .shared_draws import LOOKED_AT, SharedDraws

INDICES, BATCHES = "indices", "batches"
BEGINS_AT, KNOWN_AS = "begins_at", "known_as"  # of a data set that can begin at any batch
OWN_SAMPLERS = "torch.utils.data"


class Made(NamedTuple):
    """What an iterator's order depends on."""

    random: Dict[str, Any]
    anew: bool  # workers that persist: whether they were started then
    parts: List[Dict[str, Any]]  # plain values and random generators of the loader, its samplers and its data set
    like: Optional[Dict[str, int]] = None  # what its data set is known by


def what_is_compared(loader: Any) -> str:
    """Where the order of the indices alone does not give the data, or not PyTorch's own sampler draws them."""
    if loader.num_workers > 0 or not seams.is_map_style(loader):
        return BATCHES
    samplers = [loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None)]
    return "" if all(one is None or _is_of_torch(one) for one in samplers) else INDICES


def _is_of_torch(sampler: Any) -> bool:
    return bool(type(sampler).__module__.startswith(OWN_SAMPLERS))


def follow_indices(iterator: Any, position: Position) -> None:
    if position.checked == INDICES:
        seams.follow_indices(iterator, lambda indices: _followed(indices, position))


def _followed(indices: Any, position: Position) -> Iterator[Any]:
    for one in _looked_at(indices, position.draws) if position.draws is not None else indices:
        position.likeness = zlib.crc32(repr(one).encode(), position.likeness)
        yield one


def _looked_at(indices: Iterator[Any], draws: SharedDraws) -> Iterator[Any]:
    """A sampler that draws for each batch is not found by repeating where others have drawn between its batches."""
    for _ in range(LOOKED_AT):
        guarded(draws.asked)()
        for one in indices:
            guarded(draws.given)()
            yield one
            break
    yield from indices


def made_of(torch: Any, loader: Any) -> Made:
    anew = seams.kept_iterator(loader) is None
    return Made(random_state.capture(torch), anew, parts_state(torch, loader), likeness(loader.dataset))


def parts_state(torch: Any, loader: Any) -> List[Dict[str, Any]]:
    return [
        {**_plain_state(torch, one), **(_containers(torch, one) if _is_own_sampler(one, loader) else {})}
        for one in _parts(loader)
    ]


def _is_own_sampler(part: Any, loader: Any) -> bool:
    return part is not None and part is not loader and part is not loader.dataset and not _is_of_torch(part)


def _containers(torch: Any, sampler: Any) -> Dict[str, Any]:
    held = getattr(sampler, "__dict__", {})
    taken = {name: sampler_containers.taken(torch, value) for name, value in held.items()}
    return {CONTAINERS: {name: value for name, value in taken.items() if value is not None}}


def put_parts_state(torch: Any, loader: Any, parts: List[Dict[str, Any]]) -> None:
    for owner, state in zip(_parts(loader), parts):
        if type(owner).__qualname__ != state.get(KIND, type(owner).__qualname__):
            raise CannotPutBack("the data goes through another sampler than before")
        if owner is not None:
            _put_plain_state(torch, owner, state)


def _parts(loader: Any) -> List[Any]:
    batch_sampler = loader.batch_sampler
    return [loader, loader.sampler, batch_sampler, getattr(batch_sampler, "sampler", None), loader.dataset]


KIND, CONTAINERS = "", " containers"  # the names under which a part's class is kept, and its lists, dicts and arrays


def _plain_state(torch: Any, owner: Any) -> Dict[str, Any]:
    names = ("generator",) if type(owner).__name__ == "DataLoader" else tuple(getattr(owner, "__dict__", ()))
    found: Dict[str, Any] = {KIND: type(owner).__qualname__}
    for name in names:
        value = getattr(owner, name, None)
        state = state_of(torch, value)
        if state is not None:
            found[name] = state
        elif type(value) in PLAIN and value is not None:
            found[name] = value
    return found


def _put_plain_state(torch: Any, owner: Any, state: Dict[str, Any]) -> None:
    for name, value in state.items():
        held: Any = getattr(owner, name, None)
        if put_state(torch, held, value):
            continue
        if name == CONTAINERS:
            for kept, saved in value.items():
                vars(owner)[kept] = sampler_containers.put_back(torch, vars(owner).get(kept), pickle.loads(saved))
        elif name in vars(owner):
            vars(owner)[name] = value


def bring_forward(torch: Any, iterator: Any, loader: Any, record: Dict[str, Any], iterate: Any, following: Any) -> None:
    """`iterator`, which the script holds already, becomes one that has given so many batches."""
    made: Made = record["made"]
    random_state.restore(torch, made.random)
    begins_there = _can_begin_at_any(loader)
    if begins_there and made.parts[-1].get(KNOWN_AS) != getattr(loader.dataset, KNOWN_AS):
        raise CannotPutBack("the data that is streamed is not what it was")
    put_parts_state(torch, loader, made.parts)
    if not same_data(made.like, likeness(loader.dataset)):
        raise CannotPutBack("the data set that the loop goes over is another one than before")
    if begins_there:
        setattr(loader.dataset, BEGINS_AT, record["count"])
    if made.anew and loader.persistent_workers:
        seams.keep_iterator(loader, None)
    worker_states.hand_over(loader, record.get("workers"))
    fresh = iterate(loader)
    if fresh is not iterator:
        _exchange(iterator, fresh)
        if loader.persistent_workers:
            seams.keep_iterator(loader, iterator)
    if record["first"] is not None:
        random_state.restore(torch, record["first"])
    position = getattr(iterator, ATTRIBUTE)
    position.likeness = 0
    follow_indices(iterator, position)
    if begins_there:
        position.likeness = record["likeness"]
    for taken in range(0 if begins_there else record["count"]):
        try:
            _skip(iterator, position, following)
        except StopIteration:
            raise CannotPutBack(f"the data has {taken} batches, {record['count']} were taken") from None
    if position.likeness != record["likeness"]:
        raise CannotPutBack("the data came in another order when it was read again")
    position.count, position.made, position.first = record["count"], made, record["first"]
    position.workers = None if made.anew else worker_states.of(loader)


def _exchange(iterator: Any, fresh: Any) -> None:
    if type(fresh) is not type(iterator):
        raise CannotPutBack("the loader gives another kind of iterator")
    ours = {name: value for name, value in vars(iterator).items() if name.startswith("_holdfast")}
    ours.pop(worker_states.ATTRIBUTE, None)
    fresh.__dict__, iterator.__dict__ = iterator.__dict__, fresh.__dict__
    vars(iterator).update(ours)


def _can_begin_at_any(loader: Any) -> bool:
    """Where the data set's batches are the loader's, and are made in this process."""
    whole = loader.num_workers == 0 and loader.batch_sampler is None
    return whole and hasattr(loader.dataset, BEGINS_AT) and hasattr(loader.dataset, KNOWN_AS)


def _skip(iterator: Any, position: Position, following: Any) -> None:
    if position.checked == BATCHES:
        position.note(following(iterator))
    else:
        seams.skip_batch(iterator)
