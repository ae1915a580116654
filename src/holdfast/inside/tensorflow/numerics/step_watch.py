"""A training step, watched: its loss each time, its variables now and then.

On the CPU a step's loss is there when the step returns: reading it costs 1 µs. Weights, slots and metrics are looked at
twice a second; `FlightRecorder` knows the exact step then.
"""

from __future__ import annotations

from math import isfinite, prod
from typing import Any, Callable, List, NamedTuple, Optional, Set, Tuple

from ...headroom import left
from ...never_raise import guarded
from ...numerics.events import LOSS
from ...ring import VALIDATE
from ...telemetry import Recorder, now
from .. import seams
from ..nesting import nesting
from .finiteness import quiet
from .flight_recorder import MOST, MOST_BYTES, Assigned, FlightRecorder
from .snapshot import Snapshot, bytes_of

Step = Callable[[Any], Any]

CHECK_EVERY_S = 0.5
CHECK_SHARE = 0.0015  # of the run's time, for checks alone
PART_OF_FREE = 4  # a state is kept where it takes at most a quarter of the memory that is left
TELLINGS = 10  # of incidents in a run


class Outcome(NamedTuple):
    """Of a look that found something: logs to go on with, or an error to end with."""

    logs: Any
    ending: Optional[Exception] = None


class StepWatch:
    """Of one kind of step. A framework's part says which variables it has, and which of its logs is the loss."""

    def __init__(self, recorder: Recorder, tf: Any) -> None:
        self.recorder, self.tf = recorder, tf
        self.run: Step = lambda batch: None  # the step without numerics
        self.flight: Optional[FlightRecorder] = None
        self.key: Any = None  # of the loss in the logs
        self.on = True  # off after a failure of ours, for good
        self.reads_losses = True
        self.ending: Optional[Exception] = None  # due at the next step
        self.screen: Optional[Callable[[Any], Any]] = None  # leaves bad rows out before the step, once there were some
        self.sick = False  # something non-finite was told and is still there
        self.told, self.tellings = 0, TELLINGS
        self.latest: Any = None  # logs at the last look that found nothing
        self._losses: List[Any] = []  # on a GPU: not read yet
        self._owned: Any = frozenset()  # ids of TensorFlow's variables
        self._undefined: Set[int] = set()  # of metrics' that are not finite, as was told
        self._room, self._most, self._sampling = 0, 1, True
        self._due_at = 0.0
        self._checked_at, self._cost_s, self._check_s = 0.0, 0.0, 0.0
        self.begins: Callable[[FlightRecorder], None] = lambda _: None
        self.incident: Callable[..., Optional[Outcome]] = lambda *_: None
        self.well: Callable[..., float] = lambda *_: MOST  # after a look that found nothing; steps until the next one

    def variables(self) -> Optional[Tuple[List[Any], List[str]]]:
        """With their kinds; None before all of them are there."""
        raise NotImplementedError

    def key_of(self, logs: Any) -> Any:
        """None where there is no loss in them."""
        raise NotImplementedError

    def is_alive(self) -> bool:
        """Whether what is watched is still held by the script."""
        raise NotImplementedError

    def aspect(self, step: Step) -> Step:
        self.run = step
        begin, ordinary, look = guarded(self.begin), guarded(self._ordinary), guarded(self._look)

        def watched(batch: Any) -> Any:
            if not self.on:
                return step(batch)
            if self.ending is not None:
                raise self.ending
            if self.flight is None:
                begin()
            if self.screen is not None:
                batch = self.screen(batch) or batch
            logs = self.run(batch)
            if ordinary(batch, logs):
                return logs
            outcome = look(batch, logs) if self.on else None
            if outcome is None:
                return logs
            if outcome.ending is not None:
                raise outcome.ending
            return outcome.logs

        return watched

    # -- in every step

    def _ordinary(self, batch: Any, logs: Any) -> bool:
        """2 µs."""
        if self.sick or self.flight is None:
            return now() < self._due_at
        self.flight.entries.append(batch)
        self._room -= 1
        if not self.reads_losses:
            if self.key is not None:
                self._losses.append(self.loss_in(logs))
            return self._room > 0 and now() < self._due_at
        return self._room > 0 and isfinite(self.loss_in(logs)) and now() < self._due_at

    def loss_in(self, logs: Any) -> Any:
        return logs[self.key]

    def assigned(self, variable: Any, value: Any) -> None:
        """Between two steps, by a callback or by the script. `variable`: TensorFlow's own."""
        flight = self.flight
        if flight is None or not self.on or self.sick or id(variable) not in self._owned:
            return
        if self.recorder.phase_number != VALIDATE:  # whose metrics are reset before the next epoch
            flight.entries.append(Assigned(variable, value))

    def between_steps(self, share: float) -> None:
        """At the end of an epoch, before a validation or a save: a look, where it costs no more than so much of the time
        since the last one."""
        flight = self.flight
        worth_it = self._check_s <= share * (now() - self._checked_at)
        if self.on and flight is not None and flight.entries and not self.sick and worth_it and self.is_alive():
            self._check_between(flight)

    def _check_between(self, flight: FlightRecorder) -> None:
        self.on = False
        step = self.recorder.steps
        with quiet():
            seen_in = flight.check(step)
        if seen_in is not None:
            nesting.depth += 1
            try:
                # Keras has its logs of this epoch already: only the state can be mended.
                outcome = self.incident(self, None, None, step, seen_in)
                self.ending = outcome.ending if outcome is not None else None
            finally:
                nesting.depth -= 1
        self._checked_at = now()
        self.on = True

    # -- the state it begins with

    def begin(self) -> None:
        """Before the first step, where all variables are there by then; else after it."""
        found = self.variables()
        if found is None:
            return
        self.on = False
        variables, kinds = found
        if not self.fits(variables):
            self.recorder.event("numerics.off", reason="there is no room for a second copy of the weights")
            return
        self.flight = FlightRecorder(variables, kinds, self._undefined)
        self._owned = frozenset(id(one) for one in variables)
        self.flight.begin(Snapshot(variables, self.recorder.steps))
        self.reads_losses = all("CPU" in variable.device for variable in variables)
        self.begins(self.flight)
        self._room, self._most, self._due_at = 0, 1, 0.0  # the first step is looked at
        self.on = True

    def fits(self, variables: List[Any]) -> bool:
        room = left(self.recorder.settings.get("groups"))
        return room is None or bytes_of(variables) * PART_OF_FREE <= room.bytes

    # -- looks

    def _look(self, batch: Any, logs: Any) -> Optional[Outcome]:
        self.on = False  # stays so if this fails
        began, step = now(), self.recorder.steps + 1
        if self.flight is None or not self._same_variables():
            self.flight = None
            self.begin()
        flight, found = self.flight, None
        if flight is not None:
            if self.key is None:
                self.key = self.key_of(logs)
                self.reads_losses = self.reads_losses and self.key is not None
            with quiet():
                found = self._looked(flight, batch, logs, step, began)
        self.on = flight is not None
        return found

    def _looked(self, flight: FlightRecorder, batch: Any, logs: Any, step: int, began: float) -> Optional[Outcome]:
        seen_in = None if self._losses_are_finite(logs) else LOSS
        if seen_in is None:
            early = self._room <= 0 and began < self._due_at and not self._sampling
            if early and self._cost_s > CHECK_SHARE * (began - self._checked_at) and not self.sick:
                flight.forget()  # batches are large and checks are slow: the exact step may stay unknown
                self._room = self._most
                return None
            seen_in = flight.check(step)
        if seen_in is None:
            self.sick = False
            self._check_s = self._cost_s = now() - began
            self._checked_at, self.latest = began, logs
            self._pace(batch, self.well(self, batch, step))
            return None
        if self.sick:
            self._pace(batch, MOST)
            return None
        outcome = self.incident(self, batch, logs, step, seen_in)
        self._cost_s, self._checked_at = 0.0, now()
        only_told = outcome is None and not self.sick
        self._pace(batch, self.well(self, batch, step) if only_told else MOST)
        return outcome

    def _losses_are_finite(self, logs: Any) -> bool:
        if self.reads_losses or self.key is None:
            return self.key is None or isfinite(self.loss_in(logs))
        losses, self._losses = self._losses, []
        return not losses or isfinite(float(self.tf.math.accumulate_n(losses)))

    def _pace(self, batch: Any, steps: float) -> None:
        """Until the next look: so many steps at most, and so much time."""
        self._most = int(min(MOST, max(1, self._batches_bytes() // max(1, batch_bytes(batch, self.tf)))))
        self._room, self._sampling = int(min(self._most, steps)), steps < self._most
        self._due_at = now() + max(CHECK_EVERY_S, self._cost_s / CHECK_SHARE)

    def _batches_bytes(self) -> int:
        """That batches since the good state may take."""
        room = left(self.recorder.settings.get("groups"))
        return MOST_BYTES if room is None else min(MOST_BYTES, room.bytes // PART_OF_FREE)

    def _same_variables(self) -> bool:
        found = self.variables()
        held = self.flight.variables if self.flight is not None else []
        return found is not None and len(found[0]) == len(held) and all(a is b for a, b in zip(found[0], held))


def batch_bytes(batch: Any, tf: Any) -> int:
    """Of its dense tensors; a text counts as a pointer."""
    size = 0
    for one in tf.nest.flatten(batch, expand_composites=True):
        dtype = getattr(one, "dtype", None)
        length = getattr(dtype, "size", None) or getattr(dtype, "itemsize", None) or 8
        size += int(length) * prod(int(n or 1) for n in seams.quick_shape(one) or ())
    return size
