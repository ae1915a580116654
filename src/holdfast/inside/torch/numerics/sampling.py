"""The steps that are looked at more closely, from their backward pass to the end of the update."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set

from ...numerics import events
from ...numerics.schedule import Schedule
from ...telemetry import Recorder, now
from ..outermost_call import Call, here
from .health import UNITS_EVERY_S, Layer, Sample, layers_of, model_of
from .late_vector import LateVectors
from .origin import Scene
from .setup_facts import SetupFacts

SETUPS = 8  # pairs of a model and a loss that are told


class Sampling:
    def __init__(self, recorder: Recorder, torch: Any, late: LateVectors) -> None:
        self.recorder, self._torch = recorder, torch
        self.schedule = Schedule()
        self.due = True  # the step under way is looked at
        self._late = late
        self._sample: Optional[Sample] = None
        self._setup: Optional[SetupFacts] = None
        self._told: Set[Any] = set()
        self._cost_s = 0.0
        self._units_at = 0.0
        self._model: Any = None
        self._layers: List[Layer] = []
        self._names: Dict[int, str] = {}
        self._calls: List[Call] = []

    def before_pass(self, tensor: Any, shown: Any, frame: Any) -> None:
        began = now()
        self._calls = list(here.calls)
        model = model_of(self._calls)
        if model is not None:
            self._names = {id(p): name for name, p in model.named_parameters()}
        self._layers = layers_of(model, [])
        units = began >= self._units_at
        self._sample = Sample(self.recorder, self._torch, self._late)
        self._sample.loss(tensor, shown, units, self._names)
        if units:
            self._units_at = began + UNITS_EVERY_S
        self._cost_s += now() - began
        if len(self._told) < SETUPS and type(model).__name__ not in self._told and tensor.numel() == 1:
            self._setup = SetupFacts(self._torch, Scene(self._torch, tensor, frame, self._calls))

    def after_pass(self) -> None:
        if self._sample is not None:
            began = now()
            self._sample.gradients(self._layers)
            self._cost_s += now() - began

    def before_update(self, optimizer: Any) -> None:
        if self._sample is not None and not self._sample.optimizer:
            began = now()
            self._sample.before_update(optimizer)
            self._cost_s += now() - began

    def after_update(self, optimizer: Any, was_made: bool) -> None:
        sample, self._sample = self._sample, None
        if sample is None:
            return
        began = now()
        setup, self._setup = self._setup, None
        if setup is not None and setup.key not in self._told:
            self._told |= {setup.key, setup.key[0]}
            events.tell_setup(self.recorder, setup.completed(self.recorder.steps, optimizer, sample.clips))
        sample.after_update(was_made)
        self._calls, self._layers = [], []
        self.schedule.looked(self.recorder.steps, self._cost_s + now() - began)
        self._cost_s = 0.0
