"""The steps that are looked at more closely, from their backward pass to the end of the update."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ...numerics import events
from ...numerics.room import is_ample
from ...numerics.schedule import JUMP, Schedule
from ...telemetry import Recorder, now
from ..outermost_call import here
from . import loss_graph
from .carried_gradients import CarriedGradients
from .health import UNITS_EVERY_S, Sample, layers_of
from .late_vector import LateVectors
from .left_out import NAMES, LeftOut
from .loss_graph import LossFound
from .noticing import models_of
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
        self._setup: Optional[Tuple[Any, SetupFacts]] = None  # of the sample under way
        self._ready: List[Tuple[int, SetupFacts, Optional[bool]]] = []  # told once the other optimizers are known, too
        self._told: Set[Any] = set()
        self._given: Set[int] = set()  # parameters of the optimizers that were seen, by id
        self._left_out: Dict[Any, LeftOut] = {}
        self._carried = CarriedGradients(torch)
        self._rates: Dict[int, float] = {}  # of optimizers, by id
        self._cost_s = 0.0
        self._units_at = 0.0
        self.labels_wanted: Callable[[], bool] = lambda: False
        self.labels_found: Callable[[Any, int, Optional[int]], None] = lambda *_: None

    def before_pass(self, tensor: Any, shown: Any, scale: Any, frame: Any) -> None:
        """`shown` is the loss as the script has it, `scale` what a GradScaler made it larger by."""
        began = now()
        models = models_of(here.calls)
        self._carried.before_pass(models)
        names = {id(p): name for model in models for name, p in model.named_parameters()}
        units = bool(self.schedule.next_step) or began >= self._units_at
        sample = Sample(self.recorder, self._torch, self._late, layers_of(models), scale)
        self._sample = sample  # another thread that trains may end it at any moment
        sample.loss(tensor, shown, units, names)
        if units:
            self._units_at = began + UNITS_EVERY_S
        self._cost_s += now() - began
        key = (tuple(sorted(map(id, models))), sample.loss_name)
        if key not in self._left_out and len(self._left_out) < SETUPS and tensor.grad_fn is not None:
            self._left_out[key] = LeftOut(self._torch, tensor, models, self.recorder.steps + 1)
        if len(self._told) < SETUPS and key not in self._told and tensor.numel() == 1:
            room = is_ample(self.recorder)
            facts = SetupFacts(self._torch, Scene(self._torch, tensor, frame, list(here.calls), has_room=room))
            self._setup = (key, facts)
            self._tell_labels(facts.loss_found)
        elif tensor.grad_fn is not None and self.labels_wanted():
            self._tell_labels(loss_graph.found_in(tensor))

    def _tell_labels(self, found: Optional[LossFound]) -> None:
        if found is not None and found.classes and found.target is not None:
            self.labels_found(found.target, found.classes, found.ignored)

    def after_pass(self) -> None:
        sample = self._sample
        if sample is not None:
            began = now()
            sample.gradients()
            self._cost_s += now() - began

    def rate_jumped(self, optimizer: Any) -> bool:
        """The steps from here on are sampled like the first ones. A rate that is a tensor is not read: it may be on a device."""
        rate = optimizer.param_groups[0].get("lr")
        if type(rate) is not float:
            return False
        was, self._rates[id(optimizer)] = self._rates.get(id(optimizer), rate), rate
        if not 0.0 < JUMP * was <= rate:
            return False
        self.schedule.begin_again(self.recorder.steps)
        return True

    def before_update(self, optimizer: Any) -> None:
        self._given |= {id(p) for group in optimizer.param_groups for p in group["params"]}
        sample, setup = self._sample, self._setup
        if sample is None or sample.optimizer:
            return
        began = now()
        sample.before_update(optimizer)
        carried = self._carried.share(optimizer)
        if carried is not None:
            sample.carried(carried)
        self._cost_s += now() - began
        if setup is not None and not setup[1].choose(optimizer):
            self._setup = None  # of a model that another optimizer trains

    def after_update(self, was_made: bool) -> None:
        sample, self._sample = self._sample, None
        self._carried.after_update()
        if sample is None:
            return
        began = now()
        ready, self._ready = self._ready, []
        for step, facts, clips in ready:
            events.tell_setup(self.recorder, facts.completed(step, self._given, clips))
        setup, self._setup = self._setup, None
        if setup is not None and setup[1].is_chosen:  # an optimizer of its own was seen to update it
            self._told.add(setup[0])
            self._ready.append((self.recorder.steps, setup[1], sample.clips))
        self._tell_left_out(sample)
        sample.after_update(was_made)
        self.schedule.looked(self.recorder.steps, self._cost_s + now() - began)
        self._cost_s = 0.0

    def _tell_left_out(self, sample: Sample) -> None:
        """By all optimizers seen until now: a step may have several."""
        found = [each.still(self.recorder.steps, self._given) for each in self._left_out.values()]
        own, hidden = ([name for names in each for name in names] for each in zip(*found)) if found else ([], [])
        if own:
            sample.facts["left_out"] = own[:NAMES]
            sample.facts["never_trained"] = any(
                each.never_trained() for each, names in zip(self._left_out.values(), found) if names[0]
            )
        if hidden:
            sample.facts["unregistered"] = hidden[:NAMES]
