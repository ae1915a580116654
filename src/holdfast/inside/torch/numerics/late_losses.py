"""Noticing on a GPU: what each step's numbers are is gathered on the device and read some steps later, all together.

A step leaves up to three numbers: the sum of its input, its loss, and the sum of one small gradient. Which of them is the
first that is not finite says at which step it began, and where: there is never a sync.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any, Deque, List, Optional, Tuple

from ...numerics import events
from ...numerics.events import NonFinite
from ...telemetry import now
from ..outermost_call import Call
from ..tensor_nests import tensors_of
from .finite import bad_input, is_float
from .late_vector import LateVectors
from .noticing import Noticing
from .origin import Scene

READ_EVERY_S = 0.1
QUICK_S = 0.004  # steps that are shorter have their loss kept and nothing else: a sum takes 10 µs to be asked for
BATCHES, BATCH_BYTES = 4, 64 << 20  # that are kept to look at their rows


class LateLosses:
    def __init__(self, notices: Noticing, late: LateVectors) -> None:
        self._notices, self._torch, self._late = notices, notices.torch, late
        self._steps: List[Tuple[int, List[Tuple[str, Any]]]] = []
        self._batches: Deque[Tuple[int, List[Call]]] = deque(maxlen=BATCHES)
        self._read_at = 0.0
        self._began = 0.0
        self._step_s = 0.0
        self._over = False

    def loss(self, step: int, shown: Any, calls: List[Call]) -> None:
        moment = now()
        self._step_s, self._began = moment - self._began, moment
        found: List[Tuple[str, Any]] = []
        if self._step_s > QUICK_S:
            found = [(events.INPUT, each.detach().sum()) for each in self._inputs(calls)[:1]]
            self._batches.append((step, calls))
        found.append((events.LOSS, shown.detach()))
        self._steps.append((step, found))
        if moment >= self._read_at:
            self._read_at = moment + READ_EVERY_S
            self._read()

    def gradient(self, gradient: Any) -> None:
        if self._steps and self._step_s > QUICK_S:
            self._steps[-1][1].append((events.GRADIENT, gradient.detach().sum()))

    def _inputs(self, calls: List[Call]) -> List[Any]:
        found = [t for _, args, kwargs in calls for t in tensors_of((args, kwargs), self._torch)]
        small = [t for t in found if is_float(self._torch, t) and not t.requires_grad]
        return [t for t in small if t.numel() * t.element_size() * BATCHES <= BATCH_BYTES]

    def _read(self) -> None:
        steps, self._steps = self._steps, []
        scalars = [value for _, values in steps for _, value in values]
        kinds = [(step, [kind for kind, _ in values]) for step, values in steps]
        self._late.read(scalars, lambda numbers: self._arrived(kinds, numbers))

    def _arrived(self, steps: List[Tuple[int, List[str]]], numbers: List[float]) -> None:
        values = iter(numbers)
        for step, kinds in steps:
            found = [(kind, next(values)) for kind in kinds]
            loss = next(value for kind, value in found if kind == events.LOSS)
            bad = next((kind for kind, value in found if not math.isfinite(value)), None)
            if bad is None:
                self._over = False
                self._notices.losses.append((step, loss))
            elif not self._over:
                self._over = True  # what follows is the same incident
                self._tell(step, bad)

    def _tell(self, step: int, kind: str) -> None:
        notices, torch = self._notices, self._torch
        calls = next((calls for at, calls in self._batches if at == step), [])
        scene = Scene(torch, None, None, calls)
        facts: NonFinite = {
            "step": step,
            "seen_at": notices.recorder.steps + 1,
            "seen_in": events.GRADIENT if kind == events.GRADIENT else events.LOSS,
            "origin": {events.INPUT: events.INPUT, events.GRADIENT: events.BACKWARD}.get(kind, events.UNKNOWN),
            "reproduced": None,
            "replay": "read late: the batch is gone",
            "skipped_by_scaler": notices.telemetry.scales,
        }
        bad = self._bad_input(scene)
        if bad is not None:
            facts["origin"], facts["input"] = events.INPUT, bad
            facts["replay"] = "the rows of the batch were looked at some steps later"
        notices.told_late(facts, scene)

    def _bad_input(self, scene: Scene) -> Optional[Any]:
        for name, value in scene.inputs():
            found = bad_input(self._torch, name, value)
            if found["row_count"]:
                return found
        return None
