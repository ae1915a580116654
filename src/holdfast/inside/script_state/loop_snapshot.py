"""Everything a loop of the user's needs to go on, at one moment: taken as a snapshot, and put back in a new process."""

from __future__ import annotations

import os
import pickle
from types import FrameType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .. import checkpoint_store
from . import frames, loop_heads, numpy_kinds, source_position, variables
from .begun_further_on import BegunFurtherOn
from .data_position import ATTRIBUTE, Position, by_source
from .generators import Generators
from .loop_framework import LoopFramework
from .object_graph import Graph
from .object_restore import Restoration
from .refusal import CannotPutBack, CannotTake
from .reopened_files import ReopenedFiles

REST = "loop.pickle"
OWN_AHEAD_S = 60.0  # a trainer's own checkpoint is gone on from where it is so much newer than ours


class Here(NamedTuple):
    """Where the script stands."""

    frames: List[FrameType]
    chain: List[frames.Stand]
    heads: List[List[loop_heads.Head]]
    walked: List[Any]  # generators that loops go over


def where(frame: FrameType, is_followed: Callable[[Any], bool], asked_for_data: bool) -> Here:
    frames.check_callers(frame)
    found = frames.users(frame)
    standings = [source_position.standing(one) for one in found]
    heads = [loop_heads.taken(one, standing, is_followed) for one, standing in zip(found, standings)]
    if asked_for_data:
        loop_heads.check_source(found[-1], standings[-1], is_followed)
    return Here(found, frames.stands(found), heads, _walked(found, heads))


def _walked(found: List[FrameType], heads: List[List[loop_heads.Head]]) -> List[Any]:
    """In the order of the loops."""
    return [
        loop_heads.walked(frame, loop)
        for frame, of_frame in zip(found, heads)
        for loop, head in zip(source_position.standing(frame).around, of_frame)
        if head.kind == "generator"
    ]


class Snapshot:
    """Held against what training does next. What is known only then (PyTorch's gradients) is added by `settle`."""

    def __init__(
        self,
        framework: LoopFramework,
        here: Here,
        current: Optional[Position],
        positions: List[Position],
        arguments: Any,
        has_room: Callable[[int], bool],
        may_wait: bool = False,
    ) -> None:
        self.taking = framework.taking()
        generators = Generators(lambda value: isinstance(value, framework.followed))
        graph = Graph([*numpy_kinds.kinds(), *generators.kinds(), *self.taking.kinds()], self.taking.traits())
        self.rest: Dict[str, Any] = {
            "random": framework.random_state(),
            "variables": variables.take(graph, here.frames),
            "arguments": graph.take(arguments),
            "walked": [graph.take(one) for one in here.walked],
            "generators": generators.heads,
            "chain": here.chain,
            "heads": here.heads,
            "read": [_read_already(frame) for frame in here.frames],
            "modules": sorted({str(frame.f_globals.get("__name__")) for frame in here.frames}),
            "current": current.record() if current is not None else None,
            "sources": _sources(graph, positions, current),
            "begun": [graph.numbers[id(one)] for one in framework.begun() if id(one) in graph.numbers],
            "current_data": _current_data(graph, framework, current),
            "kept_data": [graph.numbers[id(one)] for one in framework.kept_data() if id(one) in graph.numbers],
            "nodes": graph.nodes,
        }
        self.is_held = self.taking.hold(has_room, may_wait)

    def filling(self) -> Callable[[str], None]:
        rest, taking = self.rest, self.taking
        rest["tensors"] = taking.description()

        def fill(place: str) -> None:
            taking.write(place)
            with open(os.path.join(place, REST), "wb") as file:
                pickle.dump(rest, file, protocol=4)

        return fill


def _current_data(graph: Graph, framework: LoopFramework, current: Optional[Position]) -> Any:
    """Where it is kept: a loop may go over what no variable holds."""
    data = framework.data_of(current.source()) if current is not None else None
    return graph.take(data) if any(one is data for one in framework.kept_data()) else None


def _read_already(frame: FrameType) -> Dict[str, Any]:
    held = frame.f_locals
    return {
        name: held[name]
        for name in source_position.standing(frame).read
        if name in held and type(held[name]) is not list
    }


def _sources(graph: Graph, positions: List[Position], current: Optional[Position]) -> List[Tuple[int, List[Any]]]:
    found = []
    for source, group in by_source(positions, current):
        number = graph.numbers.get(id(source))
        if number is None:
            raise CannotTake("an iterator is under way whose loader no variable holds")
        found.append((number, [one.record() for one in group]))
    return found


class SavedLoop:
    def __init__(self, framework: LoopFramework, manifest: Dict[str, Any]) -> None:
        self._framework = framework
        self.manifest = manifest
        self.is_edited = False
        self.reopened = ReopenedFiles()
        self._turn_began: Any = None  # with this random state
        path = str(manifest["path"])
        checkpoint_store.check_owner(path)
        with open(os.path.join(path, REST), "rb") as file:
            self.rest: Dict[str, Any] = pickle.load(file)
        self.chain: List[frames.Stand] = self.rest["chain"]
        self.heads: List[List[loop_heads.Head]] = self.rest["heads"]
        self._putting = framework.putting(path, self.rest["tensors"])

    @property
    def is_by_trainer(self) -> bool:
        """A library's trainer ran the loop."""
        return bool(self.manifest.get("by"))

    @property
    def told(self) -> Dict[str, Any]:
        return {key: self.manifest[key] for key in ("number", "step", "fit", "epoch", "batch")}

    @property
    def why_not_gone_on(self) -> str:
        place = self.chain[-1].words
        edited = f"the code at {place} was edited since"
        return edited if self.is_edited else f"it trains before it comes to {place}, where it was"

    def is_newer_than(self, path: str) -> bool:
        """Whether it was written after this file, or not much before: it is exact."""
        written = os.path.join(str(self.manifest["path"]), checkpoint_store.MANIFEST)
        return os.path.exists(path) and os.path.getmtime(written) >= os.path.getmtime(path) - OWN_AHEAD_S

    def resumed_items(self, is_one_ahead: bool) -> int:
        """How many the loop had had; -1 where it had not begun at this place."""
        current = self.rest["current"]
        if current is None:
            return 0
        from_the_first = is_one_ahead or current["stand"] == self.chain[-1]
        return max(0, current["count"] - is_one_ahead) if from_the_first else -1

    def is_at(self, frame: FrameType) -> bool:
        """Whether the script stands where it stood."""
        found = frames.innermost_user(frame)
        if found is None or frames.stand_of(found) != self.chain[-1]:
            self.is_edited = self.is_edited or (found is not None and self._was_edited(frames.key_of(found.f_code)))
            return False
        return frames.stands(frames.users(found)) == self.chain

    def _was_edited(self, key: frames.CodeKey) -> bool:
        return any(stand.key[:2] == key[:2] and stand.key != key for stand in self.chain)

    def random_state_of_turn(self, level: int, line: int) -> Any:
        """Of the loop of this frame and line. A first turn of an inner loop began with the one around it: what has been drawn since
        is not drawn again."""
        _, state = self.rest["turns"].get((level, line), (None, None))
        if state is self._turn_began:
            return None
        self._turn_began = state
        return state

    def plan(self, or_stop: Callable[..., Any], turn_begins: Callable[[int, int], object]) -> BegunFurtherOn:
        rest = self.rest
        read = rest.get("read", ())
        return BegunFurtherOn(self.chain, self.heads, rest["modules"], or_stop, rest["generators"], turn_begins, read)

    def put_back(self, *where: Any) -> Any:
        """Returns the arguments of the call that is under way."""
        try:
            return self._put_back(*where)
        finally:
            self.reopened.put_back()

    def _put_back(
        self,
        frame: FrameType,
        current: Optional[Any],
        under_way: Callable[[], List[Position]],
        arguments: Any,
        plan: BegunFurtherOn,
    ) -> Any:
        rest, found, putting = self.rest, frames.users(frame), self._putting
        generators = Generators(lambda value: isinstance(value, self._framework.followed))
        kinds = [*numpy_kinds.kinds(), *generators.kinds(), *putting.kinds()]
        restoration = Restoration(rest["nodes"], kinds, putting.traits())
        walked = _walked(found, self.heads)
        for ref, generator in zip(rest["walked"], walked):
            restoration.bind(ref, generator)
        variables.bind(restoration, rest["variables"], found)
        restoration.bind(rest["arguments"], arguments)
        if rest.get("current_data") is not None and current is not None:
            restoration.bind(rest["current_data"], self._framework.data_of(getattr(current, ATTRIBUTE).source()))
        putting.bound(restoration)
        given, *_ = (restoration.object_of(one) for one in (rest["arguments"], *rest["walked"]))
        for number in rest.get("kept_data", ()):
            if number in restoration.bound:
                self._framework.keep_data(restoration.object_of(number))
        variables.put_back(restoration, rest["variables"], found)  # workers are started with the data set as it is then
        self._bring_forward(restoration, current, under_way())  # generators have made theirs when they were bound
        for number in rest["begun"]:
            if number in restoration.bound:
                self._framework.begin(restoration.bound[number])
        variables.put_back(restoration, rest["variables"], found)  # what the samplers have moved on
        putting.finish(restoration)
        for one, heads in zip(found, self.heads):
            for head in heads:
                for walked_through in loop_heads.put_on(one, head) if head.kind == "sequence" else ():
                    plan.put_sequence(walked_through, head.value)
        counted = [head.value for heads in self.heads for head in heads if head.kind == "generator"]
        for generator, count in zip(walked, counted):
            plan.count_on(generator, count)
        self._framework.put_random_state(rest["random"])
        return given

    def _bring_forward(self, restoration: Restoration, current: Optional[Any], positions: List[Position]) -> None:
        at_hand: Any = getattr(current, ATTRIBUTE, None)
        others = by_source(positions, at_hand)
        todo = []
        for number, records in self.rest["sources"]:
            source = restoration.bound.get(number)
            group = next((group for owner, group in others if owner is source), [])
            if source is None or len(group) != len(records):
                raise CannotPutBack("iterators of the data are under way that this process has not made")
            todo += [(one.iterator(), source, record) for one, record in zip(group, records)]
        if (current is None) != (self.rest["current"] is None):
            raise CannotPutBack("the loop goes over its data in another way")
        if current is not None:
            todo.append((current, at_hand.source(), self.rest["current"]))
        for iterator, source, record in sorted(todo, key=lambda one: int(one[2]["number"])):
            self._framework.bring_forward(iterator, source, record)
