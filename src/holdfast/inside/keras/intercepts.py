"""Calls of Keras that are redirected while the user's step is traced on a slice.

- The optimizer's update adds to sums. Where the step changes gradients itself (clipping by hand), the tape adds to them
  instead, and in the last slice gives the sums.
- A loss divides by what the whole batch would have divided by.
- A mean of a scalar is taken over the batch and not over slices.
- A metric's result that becomes a log is noted, to be taken again after the last slice.
- A loop takes one turn at a time.
- What the step assigns after its update is left to the last slice, in which the update is made: averages of the weights,
  weights that are clipped.

So nothing needs to be known about how the step is written.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from math import prod
from typing import Any, Callable, Iterator, Optional

from ..rescue_engine import CannotSplit
from . import seams
from .gradient_sketch import sketch
from .loss_reduction import Reduced, reducing
from .oom_advice import bytes_of
from .undo import optimizers_of, replaced, replaced_here

DENSE_TABLE_BYTES = 64 << 20  # up to this size a table's gradients are summed as a whole, not kept row by row


class Redirected:
    def __init__(self, model: Any, tf: Any, trains: bool) -> None:
        self._model, self._tf, self._trains = model, tf, trains
        self._thread = 0
        self.sums: dict[
            tuple[int, int], tuple[Any, Any]
        ] = {}  # by update and variable: itself, the sum of its gradients
        self.updates = 1  # of the weights within a step: a GAN has two, and each is made of all pieces…
        self.number = 0  # …so the pieces are gone through once for each; this one is being summed up
        # By update: the optimizer, and the variables as the step handed them to it.
        self.targets: dict[int, tuple[Any, list[Any]]] = {}
        self.touched: dict[int, tuple[Any, Any]] = {}  # variables assigned before the update, each with a copy
        self.tables: dict[int, list[Any]] = {}  # by update: variables whose gradients are rows, some of one place
        self.late: set[int] = set()  # variables that the step assigns after its update
        self.update: Callable[[Trace, Any], None] = lambda state, grads: None  # what the last slice does with the sums
        self.at_tape = False  # the step changes gradients before it hands them over: they are summed up before that
        self.means: dict[int, tuple[Any, Any, bool]] = {}  # by metric: itself, the mean so far, whether it was weighted
        self.divides_by_counts = False
        self.sums_rows = False  # a loss of the user's own adds rows up instead of taking their mean

    @contextlib.contextmanager
    def on(self, share: Any, totals: Any, last: bool = False, sketches: bool = False) -> Iterator[Trace]:
        self._thread = threading.get_ident()
        losses, mean = seams.losses(), seams.mean_class()
        state = Trace(share, totals, last)
        state.sketches = [] if sketches else None
        with contextlib.ExitStack() as stack:
            put_right = functools.partial(self._put_right, losses, state)
            reduce = reducing(losses.reduce_weighted_values, put_right)
            stack.enter_context(replaced(losses, "reduce_weighted_values", reduce))
            stack.enter_context(replaced(self._tf, "while_loop", one_turn_at_a_time(self._tf.while_loop)))
            stack.enter_context(replaced(mean, "update_state", self._update_mean(mean.update_state, state)))
            if share is not None:
                variable = seams.variable_class("tensorflow")
                assign = self._assign(getattr(variable, seams.DIRECT_ASSIGN), state)
                stack.enter_context(replaced(variable, seams.DIRECT_ASSIGN, assign))
            if share is not None and self._trains and self.at_tape:
                tape: Any = self._tf.GradientTape
                stack.enter_context(replaced(tape, "gradient", self._gradient(tape.gradient, state)))
            if share is not None and self._trains:
                for optimizer in optimizers_of(self._model):
                    stack.enter_context(replaced_here(optimizer, "apply", self._apply(optimizer, state)))
                    scale = self._scale_loss(optimizer.scale_loss, state)
                    stack.enter_context(replaced_here(optimizer, "scale_loss", scale))
            if share is not None:
                for metric in _leaves(self._model):
                    stack.enter_context(replaced_here(metric, "result", self._noted(metric, metric.result, state)))
            yield state
            if state.tables:
                self.tables[self.number] = state.tables
            if share is not None and state.updates > self.updates:
                self.updates = state.updates
                raise MoreUpdates

    def _scale_loss(self, scale_loss: Callable[[Any], Any], state: Trace) -> Callable[[Any], Any]:
        """Shares are taken of the loss, before half precision sees its gradient."""

        def scaled(loss: Any) -> Any:
            state.scaled = True
            return scale_loss(loss * self._tf.cast(state.share, loss.dtype))

        return scaled

    def _apply(self, optimizer: Any, state: Trace) -> Callable[..., Any]:
        def add(grads: Any, trainable_variables: Any = None) -> None:
            number, state.updates = state.updates, state.updates + 1
            order = list(trainable_variables or seams.trained_by(optimizer))
            part = 1.0 if state.scaled else state.share
            state.scaled = False
            if state.sketches is None and number == self.number:
                self.targets[number] = (optimizer, order)
            if not self.at_tape:
                self._gather(optimizer, grads, order, part, number, state)
            if state.last and number == self.number:
                self.update(state, grads)
            state.is_late = state.updates == self.updates

        return add

    def _gather(self, optimizer: Any, grads: Any, order: Any, part: Any, number: int, state: Trace) -> None:
        for gradient, variable in zip(grads, order):
            if gradient is None:
                continue
            if state.sketches is not None:
                state.sketches.append(sketch(gradient, prod(variable.shape), part, self._tf))
            elif number == self.number:
                self._add(optimizer, gradient, variable, part, state)

    def _gradient(self, original: Callable[..., Any], state: Trace) -> Callable[..., Any]:
        """The tape's: summed up as it comes. In the last slice the sums come out, and the step goes on with them."""
        tf = self._tf
        own = {id(one): variable for variable in self._model.variables for one in (variable, seams.value_of(variable))}

        def gradient(tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(tape, target, sources, *args, **kwargs)
            order = [own.get(id(source)) for source in tf.nest.flatten(sources)]
            others = any(one is None for one in order)  # by something else than weights: a gradient penalty
            if others or threading.get_ident() != self._thread:
                return found
            number, state.tapes = state.tapes, state.tapes + 1
            grads = tf.nest.flatten(found)
            if number or any(isinstance(one, tf.IndexedSlices) for one in grads):
                raise CannotSplit(
                    "its training step changes gradients that are rows of a table, or those of two losses"
                )
            self._gather(None, grads, order, 1.0 if state.scaled else state.share, number, state)
            if not state.last:
                return found
            sums = [None if one is None else tf.cast(self._sum_of(of), one.dtype) for one, of in zip(grads, order)]
            return tf.nest.pack_sequence_as(found, sums)

        return gradient

    def _add(self, optimizer: Any, gradient: Any, variable: Any, part: Any, state: Trace) -> None:
        tf = self._tf
        sparse = isinstance(gradient, tf.IndexedSlices)
        if sparse and not (adds_up(optimizer) and bytes_of([variable]) <= DENSE_TABLE_BYTES):
            values = gradient.values * tf.cast(part, gradient.values.dtype)
            state.rows_of_tables[str(len(state.rows_of_tables))] = (values, gradient.indices)
            state.tables.append(variable)
            return
        total = self._sum_of(variable)
        values = tf.cast(gradient.values if sparse else gradient, total.dtype)
        if part is not None and not isinstance(part, float):
            values = values * tf.cast(part, total.dtype)
        if sparse:
            total.scatter_add(tf.IndexedSlices(values, gradient.indices))
        else:
            total.assign_add(values)

    def _assign(self, original: Callable[[Any, Any], None], state: Trace) -> Callable[[Any, Any], None]:
        def is_of_a_metric(variable: Any) -> bool:
            metrics = [*self._model.metrics, *seams.nested_metrics(self._model)]
            return any(variable is one for metric in metrics for one in metric.variables)

        def assign(variable: Any, value: Any) -> None:
            if threading.get_ident() == self._thread:
                if state.is_late and not is_of_a_metric(variable):
                    self.late.add(id(variable))
                    if not state.last:
                        return
                else:
                    self._touch(variable)
            original(variable, value)

        return assign

    def _touch(self, variable: Any) -> None:
        """A copy before the first assignment; while a graph is traced there is nothing to copy yet."""
        if seams.value_of(variable) is None or self.touched.get(id(variable), (None, None))[1] is not None:
            return
        eager = self._tf.executing_eagerly()
        self.touched[id(variable)] = (variable, self._tf.identity(seams.value_of(variable)) if eager else None)

    def _sum_of(self, variable: Any) -> Any:
        key = (self.number, id(variable))
        if key not in self.sums:
            tf = self._tf
            dtype = seams.value_of(variable).dtype
            dtype = tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype
            with tf.init_scope():
                self.sums[key] = (variable, tf.Variable(tf.zeros(variable.shape, dtype), trainable=False))
        return self.sums[key][1]

    def summed(self) -> dict[int, Any]:
        """By variable: the sums of the update that is due."""
        return {key: total for (number, key), (_, total) in self.sums.items() if number == self.number}

    def _put_right(self, losses: Any, state: Trace, loss: Any, of: Reduced) -> Any:
        """What the loss divides by is noted, or made the whole batch's."""
        if threading.get_ident() != self._thread:
            return loss
        tf = self._tf
        number = len(state.counts)
        count = self._count(losses, of)
        state.counts.append(tf.zeros([]) if count is None else count)
        if state.share is None:
            return loss
        share = tf.cast(state.share, loss.dtype)
        if count is not None:
            total = tf.cast(state.totals[number], loss.dtype)
            return loss * tf.math.divide_no_nan(tf.cast(count, loss.dtype), total) / share
        return loss / share if of.adds_up(self.sums_rows) else loss

    def _count(self, losses: Any, of: Reduced) -> Any:
        """None where the mean is over rows, which shares account for."""
        tf, (values, sample_weight, mask, reduction, _) = self._tf, of
        if len(values.shape) == 0 or reduction in (None, "none", "sum"):
            return None
        if reduction == "mean_with_sample_weight":
            weights = losses.apply_mask(
                None if sample_weight is None else tf.cast(sample_weight, values.dtype),
                None if mask is None else tf.cast(mask, values.dtype), dtype=values.dtype, reduction=reduction,
            )  # fmt: skip
            if weights is None:
                return None
            self.divides_by_counts = True
            return tf.reduce_sum(losses.squeeze_or_expand_to_same_rank(values, weights)[1])
        if mask is None:
            return None
        self.divides_by_counts = True
        return tf.reduce_sum(tf.cast(mask, tf.float64))

    def _update_mean(self, original: Callable[..., Any], state: Trace) -> Callable[..., Any]:
        def update_state(metric: Any, values: Any, sample_weight: Any = None) -> Any:
            if threading.get_ident() != self._thread:
                return original(metric, values, sample_weight)
            if state.share is None:
                return None  # only counting
            tf = self._tf
            values = tf.convert_to_tensor(values)
            if len(values.shape):
                return original(metric, values, sample_weight)
            with tf.init_scope():
                if id(metric) not in self.means:
                    mean = tf.Variable(tf.zeros([], metric.dtype), trainable=False)
                    self.means[id(metric)] = (metric, mean, sample_weight is not None)
            self.means[id(metric)][1].assign_add(tf.cast(values, metric.dtype) * tf.cast(state.share, metric.dtype))
            return None

        return update_state

    def _noted(self, metric: Any, result: Callable[[], Any], state: Trace) -> Callable[[], Any]:
        def noted() -> Any:
            value = result()
            if not isinstance(value, dict):
                state.results[id(value)] = metric
                state.alive.append(value)
            return value

        return noted


class MoreUpdates(Exception):
    """The step updates its weights more often than was known when it was traced."""


class Trace:
    """What is known while one slice is traced."""

    def __init__(self, share: Any, totals: Any, last: bool) -> None:
        self.share, self.totals, self.last = share, totals, last
        self.sketches: Optional[list[Any]] = None  # of the gradients, where nothing else is wanted of them
        self.counts: list[Any] = []  # what each loss divides by, in the order of the losses
        self.scaled = False
        self.updates = 0
        self.tapes = 0
        self.is_late = False  # after the update
        self.results: dict[int, Any] = {}
        self.alive: list[Any] = []
        self.rows_of_tables: dict[str, tuple[Any, Any]] = {}  # values and where they belong, in the order of `tables`
        self.tables: list[Any] = []


def one_turn_at_a_time(while_loop: Callable[..., Any]) -> Callable[..., Any]:
    """Keras lets 32 turns of a recurrent layer run at once, and each has a gradient of all its weights: two layers of 1024
    units took 367 MiB for one row, and take 90 MiB in turn, with the same result."""

    def in_turn(*args: Any, **kwargs: Any) -> Any:
        return while_loop(*args, **{**kwargs, "parallel_iterations": 1})

    return in_turn


def adds_up(optimizer: Any) -> bool:
    """Whether an update by two gradients of one place is that by their sum. Keras squares the rows of an embedding's
    gradient before it adds them up, so most optimizers must get each row as the whole batch has it: with Adam a
    transformer's loss was 25 % off after eight steps."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if getattr(inner, "gradient_accumulation_steps", None):
        return True  # Keras adds them up by itself
    clips = any(getattr(inner, name, None) for name in ("clipnorm", "global_clipnorm", "clipvalue"))
    return type(inner).__name__ == "SGD" and seams.is_of_keras(type(inner).__module__) and not clips


def _leaves(model: Any) -> list[Any]:
    """The metrics whose results become logs; a compiled list of them is not one."""
    found: list[Any] = []
    for metric in model.metrics:
        inner = getattr(metric, "metrics", None)
        found += list(inner) if inner is not None else [metric]
    return found


def table_rows(values: Any, where: Any, variable: Any, tf: Any) -> Any:
    """A gradient as TensorFlow hands it to an optimizer."""
    shape = tf.constant([int(size) for size in variable.shape], tf.int64)
    return tf.IndexedSlices(values, where, shape)
