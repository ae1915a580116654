"""One user batch in k slices: gradients summed up, one update, metrics and logs as for the whole batch.

The user's own `train_step` is traced on a slice, with calls of Keras redirected (`intercepts.py`). Never compiled by XLA,
whatever the model is: an XLA-compiled step that runs out of memory has given away the variables it was to update. (The
update itself is, where the model is: it works in place then.)

Held beside what a step on a slice holds: one sum for each gradient, and copies of what the step assigns before its update
(statistics, metrics, seeds). A step with several updates (a GAN) goes through the slices once for each.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable

from ..out_of_memory import attempt, forget
from ..piece_sizes import bounds
from ..rescue_engine import CannotSplit
from . import seams
from .batch_slices import cut, open_ended, rows_of
from .combined_logs import combined_logs
from .gradient_check import check_that_parts_make_the_whole, few_of, own_code
from .intercepts import MoreUpdates, Redirected, table_rows
from .oom_advice import bytes_of
from .split_effects import Effects
from .table_rows import GatheredRows
from .traced_graphs import Graphs, updates_in_turn

WORTH_A_GRAPH_BYTES = 32 << 20  # of the largest variable: the graph of 60 small ones took 70 MiB


class SlicedStep:
    """Of one model and its training step as it is compiled now."""

    def __init__(
        self, model: Any, step: Callable[[Any], Any], tf: Any, trains: bool, graphs: Graphs = Graphs.ALL,
        xla_updates: bool = False,
    ) -> None:  # fmt: skip
        self._model, self._step, self._tf, self._trains = model, step, tf, trains
        self.calls = Redirected(model, tf, trains)
        self._results: dict[str, Any] = {}  # logs that are metrics' results
        self._effects = Effects(model) if trains else None
        self.stage = ""
        self.verified = not trains
        self._graphs, self._xla_updates = graphs, xla_updates
        self._eager = bool(model.run_eagerly) or graphs == Graphs.NONE
        self._own = {id(variable) for variable in model.non_trainable_weights}
        self._rows, self._tables_bytes_a_row = 0, 0.0
        self._done: list[tuple[int, int]] = []
        self._totals: Any = None
        self._logs: list[tuple[float, Any]] = []
        self._tables = GatheredRows(0, tf)
        self._after: dict[int, Any] = {}  # statistics: the mean of what the slices left
        self.trace_anew()

    def trace_anew(self) -> None:
        """What was traced took the step for another kind."""
        self._slices: dict[int, Any] = {}  # by number of the update
        self._counts = self._compiled(self._counting_step)
        self._finishes: dict[Any, Any] = {}  # by number of the update
        self._traced: set[Any] = set()

    def _compiled(self, step: Callable[..., Any]) -> Any:
        return step if self._eager else self._tf.function(step, reduce_retracing=True, autograph=False)

    # -- the whole step

    def begin(self, data: Any, rows: int, k: int) -> None:
        tf = self._tf
        self._rows, self.calls.number = rows, 0
        pieces = bounds(rows, k)
        self._verify(data, pieces[-1][1] - pieces[-1][0])
        self.stage = "trace"
        self._trace(cut(data, *pieces[0], tf))
        self.stage = "slices"
        self._totals = self._counted(data, pieces, self._counts)
        self._begin_pass()
        if self._effects is not None:
            self._effects.begins(pieces[0][1])

    def _begin_pass(self) -> None:
        """From the state before the batch; sums of an attempt that failed halfway are of no use."""
        tf = self._tf
        self._copy_touched()
        for total in self.calls.summed().values():
            total.assign(tf.zeros_like(total))
        for _, mean, _ in self.calls.means.values():
            mean.assign(tf.zeros_like(mean))
        self._done, self._logs, self._after = [], [], {}
        self._tables = GatheredRows(self._rows, tf)

    def piece(self, data: Any, begin: int, end: int) -> None:
        tf = self._tf
        share = (end - begin) / self._rows
        self._put_statistics_back()
        piece, of_whole = cut(data, begin, end, tf), tf.constant(share, tf.float64)
        is_last = self.calls.number == self.calls.updates - 1
        if end == self._rows and is_last and (self.calls.late or self.calls.at_tape):
            log, of_tables = self._last_slice(piece, of_whole, end - begin), {}
        else:
            log, of_tables = self._slice_of(self.calls.number)(piece, of_whole, self._totals)
        self._gather_statistics(share)
        self._logs.append((share, log))
        self._tables.add(of_tables, end - begin)
        self._done.append((begin, end))
        if self._effects is not None and not self.calls.number:
            self._effects.sliced()

    def end(self, data: Any) -> Any:
        if self._effects is not None:
            self._effects.ends()
        pieces = self._done
        while True:
            last = self.calls.number == self.calls.updates - 1
            self.stage = "update"
            final = self._finish(last)
            if last:
                return combined_logs(self._logs, final, self._tf)
            self._put_touched_back()
            self.calls.number += 1
            self._trace(cut(data, *pieces[0], self._tf))
            self._begin_pass()
            for begin, end in pieces:
                self.piece(data, begin, end)

    def _finish(self, last: bool) -> dict[str, Any]:
        tf, number = self._tf, self.calls.number
        if number not in self._finishes:
            self._finishes[number] = self._finishing(number)
        rows = tf.constant(self._rows, tf.int32)
        final: dict[str, Any] = self._finishes[number](rows, self._tables.joined(), last)
        if last:
            for variable, _ in self._statistics():
                if id(variable) in self._after and id(variable) not in self.calls.late:
                    seams.value_of(variable).assign(self._after[id(variable)])
        return final

    def _finishing(self, number: int) -> Callable[..., Any]:
        """Operation by operation an update has several copies of one variable at a time; in a graph, which takes memory
        itself, of one; compiled by XLA none, and it asks for little memory that it could fail to get. Where rows of a table come
        along, it is compiled once for each number of them."""
        finish, tf = self._finishing_step, self._tf
        if self._xla_updates:
            return self._by_xla(finish)
        largest = max((bytes_of([variable]) for variable in self.calls.targets.get(number, (None, ()))[1]), default=0)
        if self._eager or (self._graphs != Graphs.ALL and largest < WORTH_A_GRAPH_BYTES):
            return finish
        return tf.function(finish, reduce_retracing=True, autograph=False)  # type: ignore[no-any-return]

    def _by_xla(self, step: Callable[..., Any]) -> Callable[..., Any]:
        return self._tf.function(step, jit_compile=True, autograph=False)  # type: ignore[no-any-return]

    def _last_slice(self, piece: Any, share: Any, rows: int) -> Any:
        """The update is made within it, so that what the step does afterwards finds the new weights. A graph of its own is
        not worth its memory."""

        def update(state: Any, grads: Any) -> None:
            self.stage = "update"
            self._tables.add(state.rows_of_tables, rows)
            step: Callable[[Any], None] = self._apply if self.calls.at_tape else self._update
            if self._xla_updates:
                step = self._finishes.setdefault("in the last slice", self._by_xla(step))
            step(list(grads) if self.calls.at_tape else self._tables.joined())

        self.calls.update = update
        return self._slice_step(piece, share, self._totals, last=True)[0]

    def try_rows(self, data: Any, rows: int) -> None:
        """A piece of so many rows, as in a batch, without a trace left."""
        tf = self._tf
        piece = cut(data, 0, rows, tf)
        self.calls.number, self._rows = 0, rows_of(data, tf)
        self._verify(data, rows)
        self.stage = "trace"
        self._trace(piece)
        self.stage = "slices"
        self._totals = self._counted(data, [(0, rows)], self._counts)
        self._begin_pass()
        share = tf.constant(rows / self._rows, tf.float64)
        _, of_tables = self._slice_of(0)(piece, share, self._totals)
        held = [tensor.dtype.size * int(tensor.shape.num_elements()) for tensor in tf.nest.flatten(of_tables)]
        self._tables_bytes_a_row = sum(held) / rows
        self.put_back()

    def disclosures(self) -> list[str]:
        """What is not the same as with the whole batch, for the verdict. Measured by the first batch."""
        texts = self._effects.texts() if self._effects is not None else []
        if self._eager and not self._model.run_eagerly:
            texts.append("steps are run without a compiled graph, for which there was no memory: slower, and the same")
        if self.calls.updates > 1:
            texts.append(
                f"its step updates weights {self.calls.updates} times, so its micro-batches are run once for each, and draw anew"
            )
        return texts

    def _verify(self, data: Any, fits: int) -> None:
        """Before the sums are there: it holds one copy of the gradients itself."""
        if self.verified:
            return
        self.stage = "slices"
        rows = rows_of(data, self._tf)
        try:
            _, failure = attempt(check_that_parts_make_the_whole, self, self._model, data, rows, fits)
        finally:
            self._put_touched_back()
        if failure is not None:
            if few_of(rows, fits) <= fits:
                raise failure
            forget(failure)
            if own_code(self._model):
                raise CannotSplit("not even two rows fit, to try whether its parts make the whole")
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

    def _slice_of(self, number: int) -> Any:
        if number not in self._slices:
            self._slices[number] = self._compiled(self._slice_step)
        return self._slices[number]

    def _concrete(self, piece: Any, compiled: Any = None) -> Any:
        tf = self._tf
        scalar, vector = tf.TensorSpec([], tf.float64), tf.TensorSpec([None], tf.float64)
        return (compiled or self._slice_of(self.calls.number)).get_concrete_function(
            open_ended(piece, tf), scalar, vector
        )

    def _trace(self, piece: Any) -> None:
        """Before anything runs: what kind of losses there are, and what is assigned, is known after it."""
        tf = self._tf
        shapes = tf.nest.map_structure(lambda leaf: None if leaf is None else (leaf.dtype, leaf.shape[1:]), piece)
        key = f"{self.calls.number} {shapes}"
        if key in self._traced:
            return
        if not self._eager:
            try:
                self._concrete(piece)
            except MoreUpdates:
                self.trace_anew()
                self.calls.late.clear()
                self._concrete(piece)
            if self.calls.divides_by_counts:
                self._counts.get_concrete_function(open_ended(piece, tf))
        self._traced.add(key)

    def _counted(self, data: Any, pieces: list[tuple[int, int]], count: Callable[[Any], Any]) -> Any:
        """What each masked or weighted mean of the whole batch divides by. Only masks are computed: the rest is pruned."""
        tf = self._tf
        if not self.calls.divides_by_counts and (self.verified or not self._eager):
            return tf.zeros([1], tf.float64)
        try:
            return tf.add_n([count(cut(data, begin, end, tf)) for begin, end in pieces])
        except NotImplementedError:  # a model without a `call`: its step has losses of its own
            return tf.zeros([1], tf.float64)

    # -- what a slice assigns before the update

    def _copy_touched(self) -> None:
        touched = self.calls.touched
        for key, (variable, _) in list(touched.items()):
            touched[key] = (variable, self._tf.identity(seams.value_of(variable)))

    def _put_touched_back(self) -> None:
        for variable, copy in self.calls.touched.values():
            if copy is not None:
                seams.value_of(variable).assign(copy)

    def _statistics(self) -> list[tuple[Any, Any]]:
        """Each slice starts from the same value of them, and their mean stays."""
        if not self._trains:
            return []
        return [(variable, copy) for key, (variable, copy) in self.calls.touched.items() if key in self._own]

    def _put_statistics_back(self) -> None:
        for variable, copy in self._statistics():
            seams.value_of(variable).assign(copy)

    def _gather_statistics(self, share: float) -> None:
        tf = self._tf
        for variable, _ in self._statistics():
            value = seams.value_of(variable).read_value()
            if value.dtype.is_floating:
                part = value * tf.cast(share, value.dtype)
                before = self._after.get(id(variable))
                self._after[id(variable)] = part if before is None else before + part
            else:
                self._after[id(variable)] = tf.identity(value)

    def put_back(self) -> None:
        """After a slice that failed; CannotSplit where that cannot be. Weights and the optimizer are touched last."""
        if self.stage == "trace":
            raise CannotSplit("the sums of the gradients do not fit beside the weights")
        if self.stage == "update":
            raise CannotSplit("memory ran out within the update of the weights")
        self._put_touched_back()

    def gradient(self, data: Any, pieces: list[tuple[int, int]]) -> Any:
        """A sketch of it in one vector."""
        tf, rows = self._tf, pieces[-1][1]
        totals = self._counted(data, pieces, self._counting_step)
        found: list[Any] = []
        sketched = self._sketching(cut(data, *pieces[0], tf))
        for begin, end in pieces:
            share = tf.constant((end - begin) / rows, tf.float64)
            try:
                sketches = sketched(cut(data, begin, end, tf), share, totals)
            finally:
                self._put_touched_back()
            found = sketches if not found else [a + b for a, b in zip(found, sketches)]
        return sys.modules["numpy"].concatenate([sketch.numpy() for sketch in found])

    def _sketching(self, piece: Any) -> Callable[..., Any]:
        """A few rows are not worth a trace. But without one a recurrent layer keeps the gradient of each turn to the last."""
        if self._eager or not any(hasattr(layer, "cell") for layer in seams.layers_of(self._model)):
            return self._sketched
        sketched = self._compiled(self._sketched)
        self._concrete(piece, sketched)
        self._copy_touched()
        return sketched  # type: ignore[no-any-return]

    def _sketched(self, piece: Any, share: Any, totals: Any) -> list[Any]:
        try:
            with self.calls.on(share, totals, sketches=True) as state:
                self._step(piece)
        except MoreUpdates:
            return self._sketched(piece, share, totals)
        if not state.updates:
            raise CannotSplit("its training step does not hand gradients to an optimizer of the model's")
        return state.sketches or []

    # -- what is traced

    def _slice_step(self, piece: Any, share: Any, totals: Any, last: bool = False) -> Any:
        with self.calls.on(share, totals, last) as state:
            logs = self._step(piece)
        if isinstance(logs, dict):
            self._results = {key: state.results[id(value)] for key, value in logs.items() if id(value) in state.results}
        if self._trains and not self.calls.targets:
            raise CannotSplit("its training step does not hand gradients to an optimizer of the model's")
        return logs, state.rows_of_tables

    def _counting_step(self, piece: Any) -> Any:
        model, tf = self._model, self._tf
        with self.calls.on(None, None) as state:
            x, y, sample_weight = seams.unpack(piece)
            y_pred = model(x, training=False) if seams.takes_training(model) else model(x)
            seams.compute_loss(model, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        counts = [tf.cast(count, tf.float64) for count in state.counts]
        return tf.stack(counts) if counts else tf.zeros([1], tf.float64)

    def _finishing_step(self, rows: Any, of_tables: dict[str, tuple[Any, Any]], last: bool) -> dict[str, Any]:
        if last:
            for metric, mean, weighted in self.calls.means.values():
                metric.update_state(mean.read_value(), sample_weight=rows if weighted else None)
        if self._trains and not (last and (self.calls.late or self.calls.at_tape)):
            self._update(of_tables)
        return {key: metric.result() for key, metric in self._results.items()} if last else {}

    def _update(self, of_tables: dict[str, tuple[Any, Any]]) -> None:
        optimizer, order = self.calls.targets[self.calls.number]
        sums = self.calls.summed()
        grads: dict[int, Any] = {
            id(variable): self._tf.cast(sums[id(variable)], seams.value_of(variable).dtype)
            for variable in order
            if id(variable) in sums
        }
        for variable, (values, where) in zip(self.calls.tables.get(self.calls.number, ()), of_tables.values()):
            grads[id(variable)] = table_rows(values, where, variable, self._tf)
        in_turn = (
            updates_in_turn if not self._tf.executing_eagerly() and not self._xla_updates else contextlib.nullcontext
        )
        with in_turn(optimizer):
            self._apply([grads.get(id(variable)) for variable in order])

    def _apply(self, grads: list[Any]) -> None:
        optimizer, order = self.calls.targets[self.calls.number]
        type(optimizer).apply(optimizer, grads, order)  # past what redirects it
