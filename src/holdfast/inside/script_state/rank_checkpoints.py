"""Checkpoints of ranks that train together: each keeps its own, all of the same step, and all go on from the newest that every one has.

The first rank says in a file which step is next; the others look there, a few times a second. Ranks are never more than a step apart,
so a step that is some way ahead is known to all before they come to it. One that has missed it has no checkpoint of that step, and
then nobody goes on from there.
"""

from __future__ import annotations

import os
import re
from types import FrameType
from typing import Any, Callable, Dict, Optional, Tuple

from .. import checkpoint_store
from ..never_raise import guarded, outcome
from ..save_interval import Pace
from ..telemetry import Recorder, now
from .data_position import Position
from .loop_checkpoint import LoopCheckpoints
from .loop_framework import LoopFramework

NEXT = "next-step"  # the file
LOOK_S = 0.1  # of the other ranks at that file
AHEAD_S = 1.0  # some of their looks
LEAST_AHEAD = 3  # steps
FOLDER = re.compile(r"rank-(\d{5})-of-(\d{5})")


def folder(rank: int, size: int) -> str:
    return f"rank-{rank:05}-of-{size:05}"


def steps_of_all(directory: str) -> Dict[int, Dict[str, Any]]:
    """By step, the first rank's manifests of those that every rank has; empty where there are no ranks' checkpoints."""
    found = sorted(name for name in checkpoint_store.names(directory) if FOLDER.fullmatch(name))
    sizes = {int(name[-5:]) for name in found}
    if not found or sizes != {len(found)}:  # a job that was started with other numbers of ranks
        return {}
    each = [_whole(os.path.join(directory, name)) for name in found]
    return {step: manifest for step, manifest in each[0].items() if all(step in other for other in each)}


def newest_of_any(directory: str) -> Optional[Dict[str, Any]]:
    """Of a run: of the ranks that it has, or of the one process."""
    common = steps_of_all(directory)
    return common[max(common)] if common else checkpoint_store.newest(directory)


def _whole(directory: str) -> Dict[int, Dict[str, Any]]:
    every = [os.path.join(directory, f"{number:08}") for number in checkpoint_store.numbers(directory)]
    read = (checkpoint_store.read(path) for path in every)
    return {int(manifest["step"]): manifest for manifest in read if manifest is not None}


class RankCheckpoints(LoopCheckpoints):
    def __init__(
        self,
        recorder: Recorder,
        framework: LoopFramework,
        wanted: Dict[str, Any],
        went_on: Callable[[int], None],
        identity: Dict[str, Any],
    ) -> None:
        self._all = str(wanted["directory"])
        self._first = not identity["rank"]
        self._step: Optional[int] = None  # that was agreed on
        self._began: Optional[Tuple[float, int]] = None  # when it was first due, and after how many steps
        own = os.path.join(self._all, folder(identity["rank"], identity["world_size"]))
        resume = bool(wanted.get("resume") or identity["restart"])  # by Holdfast, or by the engine
        mine = {**wanted, "directory": own, "resume": resume, "newest": self._of_all}
        super().__init__(recorder, framework, mine, went_on)
        if not self._first:
            self.pace = Pace(LOOK_S)

    def _of_all(self, directory: str) -> Optional[Dict[str, Any]]:
        """Newer ones of this rank alone are of a course that nobody goes on with."""
        common = steps_of_all(self._all)
        newest = max(common, default=-1)
        mine = _whole(directory)
        for step, manifest in mine.items():
            if step > newest:
                checkpoint_store.remove(str(manifest["path"]))
        return mine.get(newest)

    @guarded
    def boundary(self, position: Optional[Position], frame: FrameType, arguments: Any = ()) -> None:
        if self.pending is not None:
            self.decide()
        if self._is_now():
            self._step = None
            super().boundary(position, frame, arguments)

    def _is_now(self) -> bool:
        """Sets when to look again where it is not."""
        steps, moment = self.recorder.steps, now()
        if self._began is None or steps == self._began[1]:
            self._began = self._began or (moment, steps)
            self.next_at = moment + LOOK_S
            return False
        step_s = (moment - self._began[0]) / (steps - self._began[1])
        if self._step is None or self._step < steps:
            self._step = self._said()
            if self._step <= steps and self._first:
                self._step = steps + LEAST_AHEAD + int(AHEAD_S / max(step_s, 1e-4))
                self._say(self._step)
        left = self._step - steps
        if left < 0:
            self.next_at = moment + LOOK_S
        elif left:
            self.next_at = moment + 0.5 * max(left - 2, 0) * step_s  # never so late that it is missed
        return left == 0

    def _said(self) -> int:
        def read() -> int:
            with open(os.path.join(self._all, NEXT), encoding="ascii") as file:
                return int(file.read())

        step, error = outcome(read)
        return -1 if error is not None else int(step)

    def _say(self, step: int) -> None:
        path = os.path.join(self._all, NEXT)
        with open(f"{path}.new", "w", encoding="ascii") as file:
            file.write(str(step))
        os.replace(f"{path}.new", path)

    def _asked(self, command: Dict[str, Any]) -> object:
        return "several ranks save together, at a step that they agree on"

    def _save_then(self, end: Callable[[], None]) -> bool:
        return False  # the others may be gone already, and a checkpoint of one rank is none


def checkpoints_of(
    recorder: Recorder, framework: LoopFramework, wanted: Dict[str, Any], went_on: Callable[[int], None], identity: Any
) -> LoopCheckpoints:
    """`identity`: of this process among the ranks; None where it trains alone. On several machines each has a run of its own."""
    here = identity is not None and identity.get("local_size") == identity["world_size"]
    if not here or wanted.get("one_rank"):
        return LoopCheckpoints(recorder, framework, wanted, went_on)
    return RankCheckpoints(recorder, framework, wanted, went_on, identity)
