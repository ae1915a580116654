"""One user batch in k slices: gradients summed up, one update, metrics and logs as for the whole batch.

The user's own `train_step` is traced on a slice, with four calls redirected: the optimizer's update adds to sums, a loss
divides by what the whole batch would have divided by, a mean of a scalar is taken over the batch and not over slices,
and a metric's result that becomes a log is taken again after the last slice. So nothing needs to be known about how
the step is written.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from typing import Any, Callable, Iterator

from ..pieces import bounds
from .slices import cut, open_ended, rows_of
from .undo import optimizers_of, replaced, replaced_here

DEVIATES = 0.02  # between whole and sliced gradients of a probe: rounding is far below, another sum far above
PROBE_ROWS = 8


class CannotSplit(Exception):
    """In words for the record and the verdict."""


class Micro:
    """Of one model and its training step as it is compiled now."""

    def __init__(self, model: Any, step: Callable[[Any], Any], tf: Any, trains: bool) -> None:
        self._model = model
        self._step = step
        self._trains = trains
        self._tf = tf
        self._sums: dict[int, tuple[Any, Any]] = {}  # by variable: itself, the sum of its gradients
        self._order: list[Any] = []  # variables as the step handed them to its optimizer
        self._means: dict[
            int, tuple[Any, Any, bool]
        ] = {}  # by metric: itself, the mean so far, whether it was weighted
        self._drifting: list[
            tuple[Any, Any, Any]
        ] = []  # statistics: variable, its value before, the mean of those after
        self._results: dict[str, Any] = {}  # logs that are metrics' results
        self._optimizer: Any = None
        self._thread = 0
        self.stage = ""
        self.divides_by_counts = False
        self.unknown: set[str] = set()  # reasons to verify before splitting
        self.verified = False
        self._own_sums = False
        self._eager = bool(model.run_eagerly)
        self._slice = self._compiled(self._slice_step)
        self._counts = self._compiled(self._counting_step)
        self._finish = self._compiled(self._finishing_step)
        self._traced: set[Any] = set()
        self._before: list[tuple[Any, Any]] = []

    def _compiled(self, step: Callable[..., Any]) -> Any:
        return step if self._eager else self._tf.function(step, reduce_retracing=True, autograph=False)

    # -- the whole step

    def run(self, data: Any, k: int) -> Any:
        tf = self._tf
        rows = rows_of(data, tf)
        pieces = bounds(rows, k)
        self.stage = "trace"
        self._trace(cut(data, *pieces[0], tf))
        self.stage = "slices"
        self._verify(data, pieces[0][1])
        self._trace(cut(data, *pieces[0], tf))  # anew, where that showed another kind of loss
        self._keep()
        self._clear()
        totals = self._totals(data, pieces)
        logs: list[tuple[float, Any]] = []
        for begin, end in pieces:
            share = (end - begin) / rows
            piece = cut(data, begin, end, tf)
            logs.append((share, self._slice(piece, tf.constant(share, tf.float64), totals)))
        self.stage = "update"
        return self._logs(logs, self._finish(tf.constant(rows, tf.int32)))

    def try_rows(self, data: Any, rows: int) -> None:
        """A piece of so many rows, as in `run`, without a trace left."""
        tf = self._tf
        piece = cut(data, 0, rows, tf)
        self.stage = "trace"
        self._trace(piece)
        self.stage = "slices"
        self._verify(data, rows)
        self._trace(piece)
        self._keep()
        self._clear()
        share = tf.constant(rows / rows_of(data, tf), tf.float64)
        self._slice(piece, share, self._totals(data, [(0, rows)]))
        self.put_back()

    def disclosures(self) -> list[str]:
        """What is not the same as with the whole batch, for the verdict."""
        if not self._trains:
            return []
        kinds = [type(layer).__name__ for layer in self._model._flatten_layers()]
        normalising = sum("BatchNorm" in kind for kind in kinds)
        said = []
        if normalising:
            said.append(
                f"batch normalisation ({normalising} layers) normalises over micro-batches: statistics of fewer rows, "
                "as with a smaller batch; its moving averages are updated once a step, with their mean"
            )
        if any("Dropout" in kind or "Noise" in kind for kind in kinds):
            said.append("dropout and noise draw anew for each micro-batch: other draws than with the whole batch")
        return said

    def held_bytes(self) -> int:
        """By the sums of the gradients."""
        return sum(total.dtype.size * int(total.shape.num_elements() or 0) for _, total in self._sums.values())

    def _trace(self, piece: Any) -> None:
        """Before anything runs: what kind of losses there are is known after it."""
        tf = self._tf
        key = str(tf.nest.map_structure(lambda leaf: None if leaf is None else (leaf.dtype, leaf.shape[1:]), piece))
        if key in self._traced:
            return
        self._prepare_statistics()
        spec = open_ended(piece, tf)
        if not self._eager:
            scalar, vector = tf.TensorSpec([], tf.float64), tf.TensorSpec([None], tf.float64)
            self._counts.get_concrete_function(spec)
            self._slice.get_concrete_function(spec, scalar, vector)
        self._traced.add(key)

    def _totals(self, data: Any, pieces: list[tuple[int, int]]) -> Any:
        """What each masked or weighted mean of the whole batch divides by. Only masks are computed: the rest is pruned."""
        tf = self._tf
        if not self.divides_by_counts and not self._eager:
            return tf.zeros([1], tf.float64)
        counted = [self._counts(cut(data, begin, end, tf)) for begin, end in pieces]
        return tf.add_n(counted)

    def _clear(self) -> None:
        """Sums of an attempt that failed halfway are of no use."""
        tf = self._tf
        for _, total in self._sums.values():
            total.assign(tf.zeros_like(total))
        for _, mean, _ in self._means.values():
            mean.assign(tf.zeros_like(mean))
        for variable, before, after in self._drifting:
            before.assign(variable._value)
            after.assign(tf.zeros_like(after))

    def put_back(self) -> str:
        """After a slice that failed; or why it cannot be. Weights and the optimizer are touched last."""
        if self.stage == "trace":
            return "the sums of the gradients do not fit beside the weights"
        if self.stage == "update":
            return "memory ran out within the update of the weights"
        for variable, copy in self._before:
            variable._value.assign(copy)
        return ""

    def _keep(self) -> None:
        model = self._model
        there = [*model.non_trainable_variables, *model.metrics_variables]
        self._before = [(variable, self._tf.identity(variable._value)) for variable in there]

    def _logs(self, logs: list[tuple[float, Any]], final: dict[str, Any]) -> Any:
        last = logs[-1][1]
        if not isinstance(last, dict):
            return last
        combined = {}
        for key, value in last.items():
            if key in final:
                combined[key] = final[key]
            elif getattr(value, "shape", None) == () and value.dtype.is_floating:
                combined[key] = self._tf.add_n([log[key] * self._tf.cast(share, value.dtype) for share, log in logs])
            else:
                combined[key] = value
        return combined

    # -- whether it may be split at all

    def _verify(self, data: Any, fits: int) -> None:
        """Where the sum of the parts is not known to be the whole: tried on a few rows, as one piece and as two."""
        if self.verified or not self._trains:
            return
        if not self._own_code():
            self.verified = True
            return
        few = min(max(2, min(PROBE_ROWS, fits) // 2 * 2), rows_of(data, self._tf))
        self._keep()
        with contextlib.ExitStack() as stack:
            for layer in self._model._flatten_layers():
                if "BatchNorm" in type(layer).__name__ or getattr(layer, "seed_generator", None) is not None:
                    stack.enter_context(replaced_here(layer, "call", _without_training(layer.call)))
            whole = self._gradient(data, [(0, few)])
            halves = self._gradient(data, bounds(few, 2))
            if not _alike(whole, halves) and _alike(whole, 2 * halves):
                self._own_sums = True  # a loss that adds rows up instead of taking their mean
                self._slice = self._compiled(self._slice_step)  # what was traced took it for a mean
                self._traced.clear()
                halves = self._gradient(data, bounds(few, 2))
        self.put_back()
        self.verified = True
        if not _alike(whole, halves):
            raise CannotSplit(f"the gradient of a batch is not that of its parts together ({self._own_code()})")

    def _own_code(self) -> str:
        """What of the step is not Keras's, in words; nothing where all of it is."""
        model, own = self._model, set(self.unknown)
        for name in ("train_step", "compute_loss", "_compute_loss"):
            if not getattr(type(model), name).__module__.startswith("keras.src."):
                own.add(f"a {name} of its own")
        return ", ".join(sorted(own))

    def _gradient(self, data: Any, pieces: list[tuple[int, int]]) -> Any:
        """All of it in one vector, computed eagerly: a few rows are not worth a trace."""
        tf = self._tf
        self._clear()
        rows = pieces[-1][1]
        totals = tf.add_n([self._counting_step(cut(data, begin, end, tf)) for begin, end in pieces])
        for begin, end in pieces:
            self._slice_step(cut(data, begin, end, tf), tf.constant((end - begin) / rows, tf.float64), totals)
            self.put_back()
        return tf.concat(
            [tf.reshape(tf.cast(total, tf.float64), [-1]) for _, total in self._sums.values()], axis=0
        ).numpy()

    # -- what is traced

    def _slice_step(self, piece: Any, share: Any, totals: Any) -> Any:
        for variable, before, _ in self._drifting:
            variable._value.assign(before)
        with self._redirected(share, totals) as state:
            logs = self._step(piece)
        if isinstance(logs, dict):
            self._results = {key: state.results[id(value)] for key, value in logs.items() if id(value) in state.results}
        if self._trains and not self._order:
            raise CannotSplit("its training step does not hand gradients to an optimizer of the model's")
        for variable, _, after in self._drifting:
            value = variable._value
            if value.dtype.is_floating:
                after.assign_add(value * self._tf.cast(share, value.dtype))
            else:
                after.assign(value)
        return logs

    def _counting_step(self, piece: Any) -> Any:
        model, tf = self._model, self._tf
        unpack = sys.modules["keras.src.trainers.data_adapters.data_adapter_utils"].unpack_x_y_sample_weight
        with self._redirected(None, None) as state:
            x, y, sample_weight = unpack(piece)
            y_pred = model(x, training=False) if model._call_has_training_arg else model(x)
            model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        counts = [tf.cast(count, tf.float64) for count in state.counts]
        return tf.stack(counts) if counts else tf.zeros([1], tf.float64)

    def _finishing_step(self, rows: Any) -> dict[str, Any]:
        for metric, mean, weighted in self._means.values():
            metric.update_state(mean.read_value(), sample_weight=rows if weighted else None)
        if self._trains:
            sums = {key: self._tf.cast(total, variable._value.dtype) for key, (variable, total) in self._sums.items()}
            self._optimizer.apply([sums.get(id(variable)) for variable in self._order], self._order)
        for variable, _, after in self._drifting:
            variable._value.assign(after)
        return {key: metric.result() for key, metric in self._results.items()}

    # -- calls redirected while a slice is traced

    @contextlib.contextmanager
    def _redirected(self, share: Any, totals: Any) -> Iterator[_Trace]:
        self._thread = threading.get_ident()
        losses: Any = sys.modules["keras.src.losses.loss"]
        mean: Any = sys.modules["keras.src.metrics.reduction_metrics"].Mean
        layer: Any = sys.modules["keras.src.layers.layer"].Layer
        state = _Trace(share, totals)
        with contextlib.ExitStack() as stack:
            reduce = self._reduce(losses, losses.reduce_weighted_values, state)
            stack.enter_context(replaced(losses, "reduce_weighted_values", reduce))
            stack.enter_context(replaced(mean, "update_state", self._update_mean(mean.update_state, state)))
            stack.enter_context(replaced(layer, "add_loss", self._notice_added(layer.add_loss)))
            if share is not None and self._trains:
                for optimizer in optimizers_of(self._model):
                    stack.enter_context(replaced_here(optimizer, "apply", self._add(optimizer, state)))
                    scale = self._scale_loss(optimizer.scale_loss, state)
                    stack.enter_context(replaced_here(optimizer, "scale_loss", scale))
            if share is not None:
                for metric in _leaves(self._model):
                    stack.enter_context(replaced_here(metric, "result", self._noted(metric, metric.result, state)))
            yield state
            if share is not None and state.updates > 1:
                raise CannotSplit("its training step updates the weights more than once")

    def _scale_loss(self, scale_loss: Callable[[Any], Any], state: _Trace) -> Callable[[Any], Any]:
        """Shares are taken of the loss, before half precision sees its gradient."""

        def scaled(loss: Any) -> Any:
            state.scaled = True
            return scale_loss(loss * self._tf.cast(state.share, loss.dtype))

        return scaled

    def _add(self, optimizer: Any, state: _Trace) -> Callable[..., Any]:
        def add(grads: Any, trainable_variables: Any = None) -> None:
            tf = self._tf
            state.updates += 1
            self._optimizer = optimizer
            self._order = list(trainable_variables or optimizer._trainable_variables)
            for gradient, variable in zip(grads, self._order):
                if gradient is None:
                    continue
                total = self._sum_of(variable)
                part = 1.0 if state.scaled else state.share
                if isinstance(gradient, tf.IndexedSlices):
                    values = tf.cast(gradient.values, total.dtype) * tf.cast(part, total.dtype)
                    total.scatter_add(tf.IndexedSlices(values, gradient.indices))
                else:
                    gradient = tf.cast(gradient, total.dtype)  # noqa: PLW2901
                    total.assign_add(gradient if state.scaled else gradient * tf.cast(part, total.dtype))

        return add

    def _sum_of(self, variable: Any) -> Any:
        if id(variable) not in self._sums:
            tf = self._tf
            dtype = variable._value.dtype
            dtype = tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype
            with tf.init_scope():
                self._sums[id(variable)] = (variable, tf.Variable(tf.zeros(variable.shape, dtype), trainable=False))
        return self._sums[id(variable)][1]

    def _reduce(self, losses: Any, original: Callable[..., Any], state: _Trace) -> Callable[..., Any]:
        """Keras's reduction of the values of one loss; what it divides by is noted, or made the whole batch's."""

        def reduce(
            values: Any,
            sample_weight: Any = None,
            mask: Any = None,
            reduction: Any = "sum_over_batch_size",
            dtype: Any = None,
        ) -> Any:
            loss = original(values, sample_weight=sample_weight, mask=mask, reduction=reduction, dtype=dtype)
            if threading.get_ident() != self._thread:
                return loss
            tf = self._tf
            number = len(state.counts)
            count = self._count(losses, values, sample_weight, mask, reduction, dtype)
            state.counts.append(tf.zeros([]) if count is None else count)
            if len(values.shape) == 0:
                self.unknown.add("a loss that reduces the batch by itself")
            if state.share is None:
                return loss
            share = tf.cast(state.share, loss.dtype)
            if count is not None:
                total = tf.cast(state.totals[number], loss.dtype)
                return loss * tf.math.divide_no_nan(tf.cast(count, loss.dtype), total) / share
            if self._own_sums if not len(values.shape) else reduction in (None, "none", "sum"):
                return loss / share
            return loss

        return reduce

    def _count(self, losses: Any, values: Any, sample_weight: Any, mask: Any, reduction: Any, dtype: Any) -> Any:
        """None where the mean is over rows, which shares account for."""
        tf = self._tf
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

    def _update_mean(self, original: Callable[..., Any], state: _Trace) -> Callable[..., Any]:
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
                if id(metric) not in self._means:
                    mean = tf.Variable(tf.zeros([], metric.dtype), trainable=False)
                    self._means[id(metric)] = (metric, mean, sample_weight is not None)
            self._means[id(metric)][1].assign_add(tf.cast(values, metric.dtype) * tf.cast(state.share, metric.dtype))
            return None

        return update_state

    def _notice_added(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def add_loss(layer: Any, loss: Any) -> Any:
            self.unknown.add("a loss added by a layer")
            return original(layer, loss)

        return add_loss

    def _noted(self, metric: Any, result: Callable[[], Any], state: _Trace) -> Callable[[], Any]:
        def noted() -> Any:
            value = result()
            if not isinstance(value, dict):
                state.results[id(value)] = metric
                state.alive.append(value)
            return value

        return noted

    def _prepare_statistics(self) -> None:
        """What a step changes beside weights: each slice starts from the same value, and their mean stays."""
        if self._drifting or not self._trains:
            return
        tf = self._tf
        for variable in self._model.non_trainable_weights:
            value = variable._value
            with tf.init_scope():
                before, after = (tf.Variable(tf.zeros(variable.shape, value.dtype), trainable=False) for _ in range(2))
            self._drifting.append((variable, before, after))


class _Trace:
    """What is known while one slice is traced."""

    def __init__(self, share: Any, totals: Any) -> None:
        self.share, self.totals = share, totals
        self.counts: list[Any] = []  # what each loss divides by, in the order of the losses
        self.scaled = False
        self.updates = 0
        self.results: dict[int, Any] = {}
        self.alive: list[Any] = []


def _without_training(call: Callable[..., Any]) -> Callable[..., Any]:
    """What differs from call to call, and from batch to batch, left out of a comparison."""

    @functools.wraps(call)
    def without(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **{**kwargs, "training": False})

    return without


def _alike(one: Any, other: Any) -> bool:
    size = float((one * one).sum()) ** 0.5
    return bool(float(((one - other) ** 2).sum()) ** 0.5 <= DEVIATES * max(size, 1e-30))


def _leaves(model: Any) -> list[Any]:
    """The metrics whose results become logs; a compiled list of them is not one."""
    found: list[Any] = []
    for metric in model.metrics:
        inner = getattr(metric, "metrics", None)
        found += list(inner) if inner is not None else [metric]
    return found
