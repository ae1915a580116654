"""Everything a loop of the user's needs to go on, at one moment: taken as a snapshot, and put back in a new process."""

from __future__ import annotations

import os
import pickle
from types import FrameType
from typing import Any, Callable, Container, Dict, List, NamedTuple, Optional, Tuple, Union

from .. import checkpoint_store
from ..script_state import frames, loop_heads, numpy_kinds, source_position, variables
from ..script_state.object_graph import Graph
from ..script_state.object_restore import Restoration
from ..script_state.refusal import CannotPutBack, CannotTake
from . import random_state
from .loader_position import ATTRIBUTE, Position, bring_forward, by_loader
from .tensor_kinds import TorchKinds
from .tensor_store import FILE, Block, Saved, TensorStore, Uncopied

REST = "loop.pickle"
GRADIENTS = "gradients.bin"


class Here(NamedTuple):
    """Where the script stands."""

    frames: List[FrameType]
    chain: List[frames.Stand]
    heads: List[List[loop_heads.Head]]

    @property
    def turn(self) -> Tuple[Any, ...]:
        return loop_heads.place(self.heads)


def where(frame: FrameType, is_followed: Callable[[Any], bool], asked_for_data: bool) -> Here:
    frames.check_callers(frame)
    found = frames.users(frame)
    standings = [source_position.standing(one) for one in found]
    heads = [loop_heads.taken(one, standing, is_followed) for one, standing in zip(found, standings)]
    if asked_for_data:
        loop_heads.check_source(found[-1], standings[-1], is_followed)
    return Here(found, frames.stands(found), heads)


class Snapshot:
    """All but the gradients, copied. Those are looked at when the next backward pass begins, or a step that uses them."""

    def __init__(
        self,
        torch: Any,
        here: Here,
        current: Optional[Position],
        positions: List[Position],
        block: Optional[Block],
        has_room: Callable[[int], bool],
        may_wait: bool = False,
        unchanged: Container[int] = (),
    ) -> None:
        self._torch = torch
        store = TensorStore(torch, unchanged)
        kinds = TorchKinds(torch, store=store)
        graph = Graph([*numpy_kinds.kinds(), *kinds.kinds()], kinds.traits())
        self.rest: Dict[str, Any] = {
            "random": random_state.capture(torch),
            "variables": variables.take(graph, here.frames),
            "chain": here.chain,
            "heads": here.heads,
            "modules": sorted({str(frame.f_globals.get("__name__")) for frame in here.frames}),
            "current": current.record() if current is not None else None,
            "loaders": _loaders(graph, positions, current),
            "nodes": graph.nodes,
        }
        self._gradients = store.gradients
        self.block: Union[Block, Uncopied]
        self.is_copied = has_room(store.total)
        self.block = store.copied(block, may_wait) if self.is_copied else store.as_they_are()

    def add_gradients(self) -> None:
        """Those that are still there: a script that clears them before its next backward pass does not need them."""
        kept = [(node, gradient) for node, parameter, gradient in self._gradients if parameter.grad is gradient]
        self._gradients = []
        if any(gradient.layout != self._torch.strided for _, gradient in kept):
            raise CannotTake("gradients that are not plain tensors are added up over batches")
        store = TensorStore(self._torch)
        self.rest["gradients"] = [(node, store.add(gradient)[0]) for node, gradient in kept]
        self.gradients = store.copied(None)

    def filling(self) -> Callable[[str], None]:
        rest, blocks = self.rest, {FILE: self.block, GRADIENTS: self.gradients}
        rest["entries"] = {name: (block.entries, block.bytes) for name, block in blocks.items()}

        def fill(place: str) -> None:
            for name, block in blocks.items():
                block.write(os.path.join(place, name))
            with open(os.path.join(place, REST), "wb") as file:
                pickle.dump(rest, file, protocol=4)

        return fill

    @property
    def bytes(self) -> int:
        return self.block.bytes + self.gradients.bytes


def _loaders(graph: Graph, positions: List[Position], current: Optional[Position]) -> List[Tuple[int, List[Any]]]:
    found = []
    for loader, group in by_loader(positions, current):
        number = graph.numbers.get(id(loader))
        if number is None:
            raise CannotTake("an iterator is under way whose loader no variable holds")
        found.append((number, [one.record() for one in group]))
    return found


class SavedLoop:
    def __init__(self, torch: Any, manifest: Dict[str, Any]) -> None:
        self._torch = torch
        self.manifest = manifest
        self.is_edited = False
        path = str(manifest["path"])
        checkpoint_store.check_owner(path)
        with open(os.path.join(path, REST), "rb") as file:
            self.rest: Dict[str, Any] = pickle.load(file)
        self.chain: List[frames.Stand] = self.rest["chain"]
        self.heads: List[List[loop_heads.Head]] = self.rest["heads"]
        self._tensors, self._gradients = (
            Saved(torch, os.path.join(path, name), *self.rest["entries"][name]) for name in (FILE, GRADIENTS)
        )

    def is_at(self, frame: FrameType) -> bool:
        """Whether the script stands where it stood."""
        found = frames.innermost_user(frame)
        if found is None or frames.stand_of(found) != self.chain[-1]:
            self.is_edited = self.is_edited or (found is not None and self._was_edited(frames.key_of(found.f_code)))
            return False
        return frames.stands(frames.users(found)) == self.chain

    def _was_edited(self, key: frames.CodeKey) -> bool:
        return any(stand.key[:2] == key[:2] and stand.key != key for stand in self.chain)

    def put_back(
        self, frame: FrameType, current: Optional[Any], positions: List[Position], iterate: Any, following: Any
    ) -> None:
        rest, found = self.rest, frames.users(frame)
        kinds = TorchKinds(self._torch, saved=self._tensors)
        restoration = Restoration(rest["nodes"], [*numpy_kinds.kinds(), *kinds.kinds()], kinds.traits())
        variables.bind(restoration, rest["variables"], found)
        kinds.check_layers(restoration)
        variables.put_back(restoration, rest["variables"], found)  # workers are started with the data set as it is then
        self._bring_loaders_forward(restoration, current, positions, iterate, following)
        variables.put_back(restoration, rest["variables"], found)  # what the samplers have moved on
        for node, entry in rest["gradients"]:
            parameter = restoration.object_of(node)
            parameter.grad = self._gradients.elements(entry).to(parameter.device, copy=True)
        for one, heads in zip(found, self.heads):
            for head in heads:
                if head.kind == "sequence":
                    loop_heads.put_on(one, head)
        random_state.restore(self._torch, rest["random"])

    def _bring_loaders_forward(
        self, restoration: Restoration, current: Optional[Any], positions: List[Position], iterate: Any, following: Any
    ) -> None:
        at_hand: Any = getattr(current, ATTRIBUTE, None)
        others = by_loader(positions, at_hand)
        todo = []
        for number, records in self.rest["loaders"]:
            loader = restoration.bound.get(number)
            group = next((group for owner, group in others if owner is loader), [])
            if loader is None or len(group) != len(records):
                raise CannotPutBack("iterators of the data are under way that this process has not made")
            todo += [(one.iterator(), loader, record) for one, record in zip(group, records)]
        if (current is None) != (self.rest["current"] is None):
            raise CannotPutBack("the loop goes over its data in another way")
        if current is not None:
            todo.append((current, at_hand.loader(), self.rest["current"]))
        for iterator, loader, record in sorted(todo, key=lambda one: int(one[2]["number"])):
            bring_forward(self._torch, iterator, loader, record, iterate, following)
