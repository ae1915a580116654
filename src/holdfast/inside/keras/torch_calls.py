"""Keras on the torch backend: the user's `train_step` on a part of a batch, with its update left out.

Everything is eager there, so calls are redirected while a step runs: the optimizer's update adds to sums, a loss that
sums rows up or divides by a mask's count is put right, a mean of a scalar is taken over the batch. As in `micro.py`.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional

from ..rescue_engine import CannotSplit
from ..torch.tensor_nests import cut
from . import seams
from .loss_reduction import Reduced, reducing
from .undo import optimizers_of, replaced, replaced_here


class Calls:
    """Of one batch."""

    def __init__(self, model: Any, torch: Any, sums_rows: bool) -> None:
        self._model, self._torch = model, torch
        self._sums_rows = sums_rows  # a loss of the user's own adds rows up instead of taking their mean
        self.sums: list[Any] = []
        self.variables: list[Any] = []
        self.optimizer: Any = None
        self.needs_counts = False
        self._updates = 0
        self._means: dict[int, list[Any]] = {}
        self._share = 1.0
        self._scaled = False
        self._counting: Optional[list[float]] = None
        self._totals: list[float] = []
        self._number = 0

    def train_step(self, part: Any, share: float) -> Any:
        self._share, self._scaled, self._number, self._updates = share, False, 0, 0
        with self._redirected():
            return self._model.train_step(part)

    def count(self, batch: Any, pieces: list[tuple[int, int]]) -> None:
        """What masked means divide by, over the whole batch; a forward pass, and only where a mask is seen."""
        model = self._model
        for begin, end in pieces:
            self._counting, self._number = [], 0
            with self._torch.no_grad(), self._redirected():
                x, y, sample_weight = seams.unpack(cut(batch, begin, end, self._torch))
                y_pred = model(x, training=False) if seams.takes_training(model) else model(x)
                seams.compute_loss(model, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
            found, self._counting = self._counting, None
            if not self.needs_counts:
                return
            self._totals = [a + b for a, b in zip(self._totals, found)] if self._totals else found

    def update(self, rows: int) -> None:
        """The one of the batch. What the pieces left in `grad` goes first: it is a copy of the gradients."""
        for metric, total, weighted in self._means.values():
            metric.update_state(total, sample_weight=rows if weighted else None)
        with self._torch.no_grad():
            for variable, total in zip(self.variables, self.sums):
                variable.value.grad = total
            self.optimizer.apply(self.sums, self.variables)

    @contextlib.contextmanager
    def _redirected(self) -> Iterator[None]:
        losses, mean = seams.losses(), seams.mean_class()
        with contextlib.ExitStack() as stack:
            stack.enter_context(
                replaced(losses, "reduce_weighted_values", reducing(losses.reduce_weighted_values, self._put_right))
            )
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
            self.optimizer = optimizer
            self.variables = list(trainable_variables or seams.trained_by(optimizer))
            part = 1.0 if self._scaled else self._share
            self.sums = self.sums or [None] * len(self.variables)
            with self._torch.no_grad():
                for number, gradient in enumerate(grads):
                    if gradient is None:
                        continue
                    if self.sums[number] is None:
                        self.sums[number] = gradient.detach().clone().mul_(part)
                    else:
                        self.sums[number].add_(gradient, alpha=part)

        return add

    def _put_right(self, loss: Any, of: Reduced) -> Any:
        masked = of.mask is not None and of.reduction in ("mean", "sum_over_batch_size")
        weighted = of.reduction == "mean_with_sample_weight" and of.sample_weight is not None
        count = float(of.mask.sum() if masked else of.sample_weight.sum()) if masked or weighted else 0.0
        self.needs_counts = self.needs_counts or masked or weighted
        if self._counting is not None:
            self._counting.append(count)
            return loss
        number, self._number = self._number, self._number + 1
        if masked or weighted:
            return loss * (count / max(self._totals[number], 1e-30) / self._share)
        return loss / self._share if of.adds_up(self._sums_rows) else loss

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
