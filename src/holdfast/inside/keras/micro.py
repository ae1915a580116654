"""One user batch in k slices: gradients summed up, one update, metrics and logs as for the whole batch.

The user's own `train_step` is traced on a slice, with calls of Keras redirected (`redirected.py`).
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from ..memory import forget, is_out_of_memory
from ..pieces import bounds
from .effects import Effects
from .graphs import Graphs
from .redirected import CannotSplit, Redirected, table_rows
from .slices import cut, open_ended, rows_of
from .whole_and_parts import check_that_parts_make_the_whole, few_of, own_code


class Micro:
    """Of one model and its training step as it is compiled now."""

    def __init__(
        self, model: Any, step: Callable[[Any], Any], tf: Any, trains: bool, graphs: Graphs = Graphs.ALL
    ) -> None:
        self._model = model
        self._step = step
        self._trains = trains
        self._tf = tf
        self.calls = Redirected(model, tf, trains)
        self._drifting: list[
            tuple[Any, Any, Any]
        ] = []  # statistics: variable, its value before, the mean of those after
        self._results: dict[str, Any] = {}  # logs that are metrics' results
        self._effects = Effects(model) if trains else None
        self.stage = ""
        self.verified = not trains
        self._eager = bool(model.run_eagerly) or graphs == Graphs.NONE
        self._slice = self._compiled(self._slice_step)
        self._counts = self._compiled(self._counting_step)
        finish = self._finishing_step
        self._finish = finish if graphs != Graphs.ALL else self._compiled(finish)
        self._traced: set[Any] = set()
        self._before: list[tuple[Any, Any]] = []
        self._tables_bytes_a_row = 0.0

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
        rows_of_tables: list[Any] = []
        effects = self._effects
        if effects is not None:
            effects.begins(pieces[0][1])
        for begin, end in pieces:
            share = (end - begin) / rows
            piece = cut(data, begin, end, tf)
            if end == rows and self.calls.late:
                log, of_tables = self._last_slice(piece, tf.constant(share, tf.float64), totals, rows_of_tables)
            else:
                log, of_tables = self._slice(piece, tf.constant(share, tf.float64), totals)
            logs.append((share, log))
            rows_of_tables.append(of_tables)
            if effects is not None:
                effects.sliced()
        if effects is not None:
            effects.ends()
        self.stage = "update"
        return self._logs(logs, self._finish(tf.constant(rows, tf.int32), self._joined(rows_of_tables)))

    def _joined(self, rows_of_tables: list[Any]) -> Any:
        tf = self._tf
        return tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *rows_of_tables)

    def _last_slice(self, piece: Any, share: Any, totals: Any, before: list[Any]) -> Any:
        """The update is made within it, so that what the step does afterwards finds the new weights. A graph of its own is
        not worth its memory."""

        def update(state: Any) -> None:
            self.stage = "update"
            self._update(self._joined([*before, state.rows_of_tables]))

        self.calls.update = update
        return self._slice_step(piece, share, totals, last=True)

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
        _, of_tables = self._slice(piece, share, self._totals(data, [(0, rows)]))
        held = [tensor.dtype.size * int(tensor.shape.num_elements()) for tensor in tf.nest.flatten(of_tables)]
        self._tables_bytes_a_row = sum(held) / rows
        self.put_back()

    def disclosures(self) -> list[str]:
        """What is not the same as with the whole batch, for the verdict. Measured by the first `run`."""
        texts = self._effects.texts() if self._effects is not None else []
        if self._eager and not self._model.run_eagerly:
            texts.append("steps are run without a compiled graph, for which there was no memory: slower, and the same")
        return texts

    def _verify(self, data: Any, fits: int) -> None:
        if self.verified:
            return
        rows = rows_of(data, self._tf)
        self._keep()
        try:
            check_that_parts_make_the_whole(self, self._model, data, rows, fits)
        except Exception as error:
            if not is_out_of_memory(error) or few_of(rows, fits) <= fits:
                raise
            forget(error)
            if own_code(self._model):
                raise CannotSplit("not even two rows fit, to try whether its parts make the whole") from None
        finally:
            self.put_back()
        self.verified = True

    def held_bytes(self) -> int:
        """By the sums of the gradients."""
        return sum(total.dtype.size * int(total.shape.num_elements() or 0) for _, total in self.calls.sums.values())

    def gathered_bytes(self, rows: int) -> int:
        """By what is kept of each piece until the update."""
        return int(self._tables_bytes_a_row * rows)

    def graph(self, data: Any) -> Any:
        """Of a slice of any number of rows; None where none is traced."""
        if self._eager:
            return None
        self.stage = "trace"
        piece = cut(data, 0, 1, self._tf)
        self._trace(piece)
        return self._concrete(piece).graph

    def _concrete(self, piece: Any) -> Any:
        tf = self._tf
        scalar, vector = tf.TensorSpec([], tf.float64), tf.TensorSpec([None], tf.float64)
        return self._slice.get_concrete_function(open_ended(piece, tf), scalar, vector)

    def _trace(self, piece: Any) -> None:
        """Before anything runs: what kind of losses there are is known after it."""
        tf = self._tf
        key = str(tf.nest.map_structure(lambda leaf: None if leaf is None else (leaf.dtype, leaf.shape[1:]), piece))
        if key in self._traced:
            return
        self._prepare_statistics()
        if not self._eager:
            self._concrete(piece)
            if self.calls.divides_by_counts:
                self._counts.get_concrete_function(open_ended(piece, tf))
        self._traced.add(key)

    def _totals(self, data: Any, pieces: list[tuple[int, int]]) -> Any:
        """What each masked or weighted mean of the whole batch divides by. Only masks are computed: the rest is pruned."""
        return self._counted(data, pieces, self._counts)

    def _counted(self, data: Any, pieces: list[tuple[int, int]], count: Callable[[Any], Any]) -> Any:
        tf = self._tf
        if not self.calls.divides_by_counts and (self.verified or not self._eager):
            return tf.zeros([1], tf.float64)
        try:
            return tf.add_n([count(cut(data, begin, end, tf)) for begin, end in pieces])
        except NotImplementedError:  # a model without a `call`: its step has losses of its own
            return tf.zeros([1], tf.float64)

    def _clear(self) -> None:
        """Sums of an attempt that failed halfway are of no use."""
        tf = self._tf
        for _, total in self.calls.sums.values():
            total.assign(tf.zeros_like(total))
        for _, mean, _ in self.calls.means.values():
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
        kept = {id(variable) for variable, _ in self._before}
        for metric in self._model.metrics:
            if any(id(variable) not in kept for variable in metric.variables):  # built by the slice itself
                metric.reset_state()
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

    def gradient(self, data: Any, pieces: list[tuple[int, int]]) -> Any:
        """All of it in one vector, computed eagerly: a few rows are not worth a trace."""
        tf = self._tf
        self._clear()
        rows = pieces[-1][1]
        totals = self._counted(data, pieces, self._counting_step)
        tables: dict[int, Any] = {}
        for begin, end in pieces:
            share = tf.constant((end - begin) / rows, tf.float64)
            _, of_tables = self._slice_step(cut(data, begin, end, tf), share, totals)
            for number, (variable, (values, where)) in enumerate(zip(self.calls.tables, of_tables.values())):
                added = tf.convert_to_tensor(table_rows(values, where, variable, tf))
                tables[number] = tables[number] + added if number in tables else added
            self.put_back()
        parts = [*(total for _, total in self.calls.sums.values()), *tables.values()]
        sums = [tf.reshape(tf.cast(part, tf.float64), [-1]) for part in parts]
        return tf.concat(sums, axis=0).numpy()

    def trace_anew(self) -> None:
        """What was traced took the loss for another kind."""
        self._slice = self._compiled(self._slice_step)
        self._traced.clear()

    # -- what is traced

    def _slice_step(self, piece: Any, share: Any, totals: Any, last: bool = False) -> Any:
        for variable, before, _ in self._drifting:
            variable._value.assign(before)
        with self.calls.on(share, totals, last) as state:
            logs = self._step(piece)
        if isinstance(logs, dict):
            self._results = {key: state.results[id(value)] for key, value in logs.items() if id(value) in state.results}
        if self._trains and not self.calls.order:
            raise CannotSplit("its training step does not hand gradients to an optimizer of the model's")
        for variable, _, after in self._drifting:
            value = variable._value
            if value.dtype.is_floating:
                after.assign_add(value * self._tf.cast(share, value.dtype))
            else:
                after.assign(value)
        return logs, state.rows_of_tables

    def _counting_step(self, piece: Any) -> Any:
        model, tf = self._model, self._tf
        unpack = sys.modules["keras.src.trainers.data_adapters.data_adapter_utils"].unpack_x_y_sample_weight
        with self.calls.on(None, None) as state:
            x, y, sample_weight = unpack(piece)
            y_pred = model(x, training=False) if model._call_has_training_arg else model(x)
            model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        counts = [tf.cast(count, tf.float64) for count in state.counts]
        return tf.stack(counts) if counts else tf.zeros([1], tf.float64)

    def _finishing_step(self, rows: Any, of_tables: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
        for metric, mean, weighted in self.calls.means.values():
            metric.update_state(mean.read_value(), sample_weight=rows if weighted else None)
        if self._trains and not self.calls.late:
            self._update(of_tables)
        for variable, _, after in self._drifting:
            if id(variable) not in self.calls.late:
                variable._value.assign(after)
        return {key: metric.result() for key, metric in self._results.items()}

    def _update(self, of_tables: dict[str, tuple[Any, Any]]) -> None:
        sums: dict[int, Any] = {
            key: self._tf.cast(total, variable._value.dtype) for key, (variable, total) in self.calls.sums.items()
        }
        for variable, (values, where) in zip(self.calls.tables, of_tables.values()):
            sums[id(variable)] = table_rows(values, where, variable, self._tf)
        optimizer, order = self.calls.optimizer, self.calls.order
        type(optimizer).apply(
            optimizer, [sums.get(id(variable)) for variable in order], order
        )  # past what redirects it

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
