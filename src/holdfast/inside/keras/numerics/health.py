"""Samples of a training's health: weights, gradients and updates by layer, units that are dead or saturated, labels."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from ...never_raise import outcome
from ...numerics.events import Before, Health, ends, tell_health, tell_setup
from ...numerics.plain_numbers import History, told
from ...numerics.schedule import JUMP, Schedule
from ...telemetry import Recorder, now
from ...tensorflow.numerics.array_facts import classes_of, correct_share, labels_of, spread_and_scale
from ...tensorflow.numerics.finiteness import array_of, is_float, squares_between, sum_of_squares
from ...tensorflow.numerics.flight_recorder import FlightRecorder
from .. import seams
from ..late_values import layers_of_variables, short
from .last_layer import activation_of
from .left_out import LeftOut, Noted
from .loss_kinds import loss_facts
from .probe import Probed, may_probe, probed
from .setup_facts import setup_facts
from .state import rate_of, returned_loss

SHARE = 0.0015
UNITS_EVERY_S = 2.0
UNITS = 24  # layers
SATURATES = {"tanh": (-0.99, 0.99), "sigmoid": (0.01, 0.99), "hard_sigmoid": (0.01, 0.99)}
RECTIFIES = ("relu", "relu6", "leaky_relu", "leakyrelu", "elu", "selu", "gelu", "silu", "swish")


class Sampler:
    """Of one model. A sample is told one step later, when the update is known that followed."""

    def __init__(
        self,
        recorder: Recorder,
        tf: Any,
        probe: Callable[..., Optional[Probed]] = probed,
        may: Callable[[Any], bool] = may_probe,
    ) -> None:
        self._recorder, self._tf, self._probed, self._may_probe = recorder, tf, probe, may
        self._schedule = Schedule(share=SHARE)
        self._pending: Optional[Health] = None
        self._before: List[Any] = []  # the weights at the pending sample
        self._first: Optional[Dict[int, Any]] = None
        self._setup_told = False
        self._left_out: Optional[LeftOut] = None
        self._probes = True
        self._short_of_memory = False  # it was told
        self._units_at = 0.0
        self._gradients, self._losses = History(), History()
        self._memory: Before = {}

    @property
    def has_gradients(self) -> bool:
        return bool(self._gradients.finite())

    def steps_left(self, step: int) -> float:
        """Until a sample is due by its number."""
        due = self._schedule.next_step
        return max(1, due - step) if due else math.inf

    def begins(self, flight: FlightRecorder) -> None:
        """Before the first step."""
        if flight.good is not None:
            self._first = {id(one): value for one, value in zip(flight.variables, flight.good.values)}

    def memory(self) -> Before:
        return {**self._memory, "gradient_norms": self._gradients.told(), "losses": self._losses.told()}

    def rate_is_set(self, rate: float) -> bool:
        """Between two steps. Whether it jumped: the steps from here on are sampled like the first ones."""
        was = self._memory.get("rate_was")
        if not isinstance(was, float) or not 0.0 < JUMP * was <= rate:
            return False
        self._schedule.begin_again(self._recorder.steps)
        return True

    def note_loss(self, step: int, loss: Optional[float]) -> None:
        """The mean since the look before."""
        if loss is not None:
            self._losses.add(step, loss)

    def sample(self, model: Any, flight: FlightRecorder, batch: Any, step: int, loss: Optional[float]) -> bool:
        """Whether the next step is to be looked at as well."""
        began = now()
        if self._pending is not None:
            self._tell(model, flight)
        if self._schedule.is_due(step):
            self._take(model, flight, batch, step, loss)
            self._schedule.looked(step, now() - began)
        return self._pending is not None

    def _take(self, model: Any, flight: FlightRecorder, batch: Any, step: int, loss: Optional[float]) -> None:
        units: List[List[Any]] = []
        wants_units = now() >= self._units_at
        found = self._probe(model, batch, units if wants_units else None)
        if not self._setup_told:
            self._setup_told = True
            self._tell_setup(model, batch, found, step)
            self._first = None
        if loss is None and found is not None:
            loss = returned_loss(model, found.returned)
        health: Health = {"step": step, "epoch": self._recorder.epoch_number, "loss": told(loss)}
        health["rate"] = told(rate_of(model))
        if units:
            self._units_at = now() + UNITS_EVERY_S
            health["units"] = ends(units, UNITS)
        if found is not None:
            self._add_output(health, model, found)
        names = self._left_out.still(step) if self._left_out is not None else []
        if names:
            health["left_out"] = names
            health["never_trained"] = self._left_out is not None and self._left_out.never_trained()
        self._before = self._weights(model, flight)
        groups = self._groups(model, found)
        if found is not None and found.gradients:  # without them `None` would read as a layer that gets no gradient
            health["groups"] = groups
        self._note(health)
        self._pending = health

    def _tell_setup(self, model: Any, batch: Any, found: Optional[Probed], step: int) -> None:
        tell_setup(self._recorder, setup_facts(model, batch, found, self._first or {}, step, self._tf))

    def _probe(self, model: Any, batch: Any, units: Optional[List[List[Any]]]) -> Optional[Probed]:
        if not self._probes:
            return None
        self._probes = self._may_probe(model)
        if not self._probes:
            return None

        def on_layer(layer: Any, result: Any) -> None:
            if units is not None and len(units) < 2 * UNITS:
                units.extend(unit_facts(layer, result))

        found: Optional[Probed]
        noted = None if self._setup_told else Noted(self._tf)  # the first time
        found, error = outcome(self._probed, model, batch, self._tf, self._recorder, on_layer, noted)
        if error is not None:
            self._probes = False
            self._recorder.event("numerics.not_sampled", reason=f"{type(error).__name__}: {error}"[:300])
            return None
        if found is None and not self._short_of_memory:
            self._short_of_memory = True
            self._recorder.event("numerics.not_sampled", reason="memory is short: gradients and units are left out")
        if noted is not None and found is not None:
            given = [one.variable for one in found.gradients]
            self._left_out = LeftOut(noted, given, self._recorder.steps + 1)
        return found

    # -- by layer

    def _weights(self, model: Any, flight: FlightRecorder) -> List[Any]:
        assert flight.good is not None
        places = {id(one): number for number, one in enumerate(flight.variables)}
        wanted = [places.get(id(seams.value_or_itself(one))) for one in model.trainable_variables]
        return [None if place is None else flight.good.values[place] for place in wanted]

    def _groups(self, model: Any, found: Optional[Probed]) -> List[List[Any]]:
        variables = model.trainable_variables
        gradients: Dict[int, Any] = {}
        for one in found.gradients if found is not None else ():
            gradients.setdefault(id(one.variable), one.value)
        groups: Dict[str, _Group] = {}
        scale = found.scale if found is not None else 1.0
        for name, variable, value in zip(layers_of_variables(variables), variables, self._before):
            group = groups.setdefault(name, _Group())
            group.add(value, gradients.get(id(variable)), scale)
        return ends([[name, *group.told()] for name, group in groups.items()])

    def _tell(self, model: Any, flight: FlightRecorder) -> None:
        """The update of the step after the sample."""
        health, self._pending = self._pending, None
        assert health is not None
        after = self._weights(model, flight)
        updates: Dict[str, float] = {}
        for name, old, new in zip(layers_of_variables(model.trainable_variables), self._before, after):
            if old is not None and new is not None and is_float(old):
                updates[name] = updates.get(name, 0.0) + squares_between(old, new)
        weights = 0.0
        for group in health.get("groups", []):
            group[3] = told(math.sqrt(updates.get(group[0], 0.0)))
            weights += float(group[1]) ** 2 if isinstance(group[1], float) else 0.0
        if weights > 0:
            self._memory["update_ratio"] = told(math.sqrt(sum(updates.values()) / weights))
        self._before = []
        tell_health(self._recorder, health)

    # -- what is remembered for an incident, and told as values

    def _note(self, health: Health) -> None:
        rate = health.get("rate")
        if rate is not None:
            self._memory["rate_was"] = rate
        if "scale" in health:
            self._memory["output_scale"] = health["scale"]
        norms = [group[2] for group in health.get("groups", []) if isinstance(group[2], (int, float))]
        if not norms:
            return
        whole = math.sqrt(sum(one * one for one in norms))
        self._gradients.add(int(health["step"]), whole)
        self._value("gradient_norm", whole)
        for group in health["groups"]:
            if isinstance(group[2], (int, float)):
                self._value(f"gradient_norm[{short(group[0])}]", group[2])

    def _value(self, name: str, value: float) -> None:
        self._recorder.writer.value(time.time(), self._recorder.steps + 1, name, value)

    # -- what the model gave

    def _add_output(self, health: Health, model: Any, found: Probed) -> None:
        tf = self._tf
        given = next((one for one in tf.nest.flatten(found.given) if one is not None), None)
        targets = next((one for one in tf.nest.flatten(found.parts[1]) if one is not None), None)
        labels = None
        if isinstance(targets, tf.Tensor) and targets.dtype != tf.string:
            kinds = classes_of(array_of(targets))
            if kinds:
                health["classes"] = kinds
                labels = labels_of(array_of(targets))
        if isinstance(given, tf.Tensor) and is_float(given):
            array = array_of(given)
            health.update(spread_and_scale(array))  # type: ignore[typeddict-item]
            if labels is not None and loss_facts(model).get("family") in ("binary", "categorical", "sparse", "hinge"):
                share = correct_share(labels, array)
                if share is not None:
                    health["correct"] = told(share)


class _Group:
    """The variables of one layer."""

    def __init__(self) -> None:
        self._weights, self._gradients, self._zeros, self._numbers, self._with = 0.0, 0.0, 0, 0, 0

    def add(self, weight: Any, gradient: Any, scale: float) -> None:
        numpy: Any = sys.modules["numpy"]
        size = 0
        if weight is not None:
            size = int(array_of(weight).size)
            self._weights += sum_of_squares(weight) or 0.0
        self._numbers += size
        if gradient is None:
            return
        values = getattr(gradient, "values", gradient)  # of IndexedSlices: rows of a table
        array = array_of(values)
        self._with += size
        self._gradients += (sum_of_squares(values) or 0.0) / scale**2
        there = int(numpy.count_nonzero(array))
        if values is not gradient:  # a row may come several times
            there = len(numpy.unique(array_of(gradient.indices))) * int(array.shape[-1])
        self._zeros += size - min(size, there)

    def told(self) -> List[Any]:
        """weight_norm, gradient_norm, update_norm (comes later), zero_share, numbers."""
        gradient = told(math.sqrt(self._gradients)) if self._with else None
        zeros = told(self._zeros / self._with) if self._with else None
        return [told(math.sqrt(self._weights)), gradient, None, zeros, self._numbers]


def unit_facts(layer: Any, result: Any) -> List[List[Any]]:
    """[[layer, activation, dead share, saturated share]] of a layer with an activation that can die or saturate."""
    activation = activation_of(layer)
    if activation not in SATURATES and activation not in RECTIFIES:
        return []
    if not is_float(result) or len(result.shape) < 2:
        return []
    numpy: Any = sys.modules["numpy"]
    array = array_of(result)
    flat = array.reshape(-1, array.shape[-1])
    if len(flat) < 2 or not numpy.isfinite(flat).all():
        return []
    dead = float((flat.max(axis=0) == flat.min(axis=0)).mean())
    saturated = 0.0
    if activation in SATURATES:
        low, high = SATURATES[activation]
        saturated = float(((flat < low) | (flat > high)).mean())
    return [[str(layer.name), activation, told(dead), told(saturated)]]
