"""Keras on the torch backend: the user's `train_step` on one slice after the other, with one update at the end.

Everything is eager there, so calls are redirected while a step runs: the optimizer's update adds to sums, a loss that
sums rows up or divides by a mask's count is put right, a mean of a scalar is taken over the batch. As in `micro.py`.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator, Optional

from ..pieces import bounds
from ..rescue_engine import CannotSplit
from ..torch.slicing import cut
from .effects import Effects
from .undo import optimizers_of, replaced, replaced_here


class Slices:
    """One batch, in k of them."""

    def __init__(self, model: Any, torch: Any, sums_rows: bool, update_begins: Callable[[], None]) -> None:
        self._model, self._torch, self._update_begins = model, torch, update_begins
        self._sums_rows = sums_rows  # a loss of the user's own adds rows up instead of taking their mean
        self._sums: Optional[list[Any]] = None
        self._variables: list[Any] = []
        self._optimizer: Any = None
        self._updates = 0
        self._means: dict[int, list[Any]] = {}
        self._share = 1.0
        self._scaled = False
        self._counting: Optional[list[float]] = None
        self._totals: list[float] = []
        self._number = 0
        self._needs_counts = False

    def gradient(self, batch: Any, pieces: list[tuple[int, int]]) -> Any:
        """All of it in one vector, and no update."""
        self._count(batch, pieces)
        with self._redirected():
            for begin, end in pieces:
                self._next((end - begin) / pieces[-1][1])
                self._model.train_step(cut(batch, begin, end, self._torch))
        return self._torch.cat([total.double().flatten() for total in self._sums or () if total is not None])

    def _next(self, share: float) -> None:
        self._share, self._scaled, self._number, self._updates = share, False, 0, 0

    def run(self, batch: Any, rows: int, k: int, effects: Effects) -> Any:
        pieces = bounds(rows, k)
        model = self._model
        statistics = [
            (v, v.value.detach().clone(), self._torch.zeros_like(v.value)) for v in model.non_trainable_weights
        ]
        self._count(batch, pieces)
        effects.begins(pieces[0][1])
        logs: list[tuple[float, Any]] = []
        with self._redirected():
            for begin, end in pieces:
                self._next((end - begin) / rows)
                with self._torch.no_grad():
                    for variable, before, _ in statistics:
                        variable.value.copy_(before)
                logs.append((self._share, model.train_step(cut(batch, begin, end, self._torch))))
                effects.sliced()
                for variable, _, after in statistics:
                    after.add_((variable.value.detach() * self._share).to(after.dtype))
        effects.ends()
        self._finish(statistics, rows)
        return self._logs(logs)

    def _count(self, batch: Any, pieces: list[tuple[int, int]]) -> None:
        """What masked means divide by, over the whole batch; a forward pass, and only where a mask is seen."""
        model = self._model
        unpack = sys.modules["keras.src.trainers.data_adapters.data_adapter_utils"].unpack_x_y_sample_weight
        for begin, end in pieces:
            self._counting, self._number = [], 0
            with self._torch.no_grad(), self._redirected():
                x, y, sample_weight = unpack(cut(batch, begin, end, self._torch))
                y_pred = model(x, training=False) if model._call_has_training_arg else model(x)
                model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
            found, self._counting = self._counting, None
            if not self._needs_counts:
                return
            self._totals = [a + b for a, b in zip(self._totals, found)] if self._totals else found

    def _finish(self, statistics: list[Any], rows: int) -> None:
        for metric, total, weighted in self._means.values():
            metric.update_state(total, sample_weight=rows if weighted else None)
        self._update_begins()
        with self._torch.no_grad():
            self._optimizer.apply(self._sums, self._variables)
            for variable, _, after in statistics:
                variable.value.copy_(after)

    def _logs(self, logs: list[tuple[float, Any]]) -> Any:
        last = logs[-1][1]
        if not isinstance(last, dict):
            return last
        results = self._model.get_metrics_result()
        return {key: results[key] if key in results else sum(share * log[key] for share, log in logs) for key in last}

    @contextlib.contextmanager
    def _redirected(self) -> Iterator[None]:
        losses: Any = sys.modules["keras.src.losses.loss"]
        mean: Any = sys.modules["keras.src.metrics.reduction_metrics"].Mean
        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(losses, "reduce_weighted_values", self._reduce(losses.reduce_weighted_values)))
            stack.enter_context(replaced(mean, "update_state", self._update_mean(mean.update_state)))
            for optimizer in optimizers_of(self._model):
                stack.enter_context(replaced_here(optimizer, "apply", self._add(optimizer)))
                stack.enter_context(replaced_here(optimizer, "scale_loss", self._scale(optimizer.scale_loss)))
            yield

    def _scale(self, scale_loss: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def scaled(loss: Any) -> Any:
            self._scaled = True
            return scale_loss(loss * self._share)

        return scaled

    def _add(self, optimizer: Any) -> Callable[..., None]:
        def add(grads: Any, trainable_variables: Any = None) -> None:
            self._updates += 1
            if self._updates > 1:
                raise CannotSplit("its training step updates the weights more than once")
            self._optimizer = optimizer
            self._variables = list(trainable_variables or optimizer._trainable_variables)
            part = 1.0 if self._scaled else self._share
            with self._torch.no_grad():
                if self._sums is None:
                    self._sums = [None if g is None else g.detach().clone().mul_(part) for g in grads]
                    return
                for total, gradient in zip(self._sums, grads):
                    if gradient is not None:
                        total.add_(gradient, alpha=part)

        return add

    def _reduce(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def reduce(
            values: Any,
            sample_weight: Any = None,
            mask: Any = None,
            reduction: Any = "sum_over_batch_size",
            dtype: Any = None,
        ) -> Any:
            loss = original(values, sample_weight=sample_weight, mask=mask, reduction=reduction, dtype=dtype)
            masked = mask is not None and reduction in ("mean", "sum_over_batch_size")
            weighted = reduction == "mean_with_sample_weight" and sample_weight is not None
            count = float(mask.sum() if masked else sample_weight.sum()) if masked or weighted else 0.0
            self._needs_counts = self._needs_counts or masked or weighted
            if self._counting is not None:
                self._counting.append(count)
                return loss
            number, self._number = self._number, self._number + 1
            if masked or weighted:
                return loss * (count / max(self._totals[number], 1e-30) / self._share)
            if reduction in (None, "none", "sum") if len(values.shape) else self._sums_rows:
                return loss / self._share
            return loss

        return reduce

    def _update_mean(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update_state(metric: Any, values: Any, sample_weight: Any = None) -> Any:
            if self._counting is not None:
                return None
            if len(getattr(values, "shape", ())):
                return original(metric, values, sample_weight)
            part = (values.detach() if hasattr(values, "detach") else values) * self._share
            if id(metric) in self._means:
                self._means[id(metric)][1] = self._means[id(metric)][1] + part
            else:
                self._means[id(metric)] = [metric, part, sample_weight is not None]
            return None

        return update_state
