"""An eager loop of the script's own, watched: its loss when the tape is asked, its gradients when they are applied.

Such a step cannot be repeated, since it is the script's own lines. What is known is the batch that was handed out last.
"""

from __future__ import annotations

import math
import time
from typing import Any, Callable, List, Optional

from ...keras import seams as keras_seams
from ...never_raise import guarded, outcome
from ...numerics.events import BACKWARD, GRADIENT, LOSS, SLOT, UNKNOWN, WEIGHTS, Before, NonFinite, tell_non_finite
from ...numerics.plain_numbers import History, told
from ...numerics.schedule import Schedule
from ...telemetry import Recorder, now
from .eager_samples import EagerSamples
from .examination import Examined, Leaf, of_batch, unknown
from .finiteness import first_bad, is_finite, is_float, quiet, sum_of_squares
from .function_watch import rate_of
from .step_watch import TELLINGS

SHARE = 0.0015


class EagerWatch:
    def __init__(self, recorder: Recorder, tf: Any, values: Callable[[], Any]) -> None:
        self._recorder, self._tf, self._values = recorder, tf, values
        self._schedule = Schedule(share=SHARE)
        self._batch: Any = None  # handed out last
        self._sick, self._told = False, 0
        self._losses, self._gradients = History(), History()
        self._samples = EagerSamples(recorder, tf)
        self._loss: Optional[float] = None  # of the step under way

    def pulled(self, batch: Any) -> None:
        self._batch = batch

    @guarded
    def asked_for_gradient(self, loss: Any) -> None:
        """Before the backward pass. On the CPU the loss is there; elsewhere reading it would wait for the device."""
        if loss is None or "CPU" not in loss.device:
            return
        value = self._loss = float(loss)
        self._samples.gradient_taken()
        if math.isfinite(value):
            self._losses.add(self._recorder.steps + 1, value)
            self._sick = False
        elif not self._sick:
            self._sick = True
            self._tell(LOSS, self._of_batch() or unknown("an eager step of the script's own cannot be repeated", False))

    @guarded
    def applied(self, optimizer: Any, gradients: Any, variables: Any = None) -> None:
        """After the update."""
        loss, self._loss = self._loss, None
        self._sample(optimizer, gradients, variables, loss)
        step = self._recorder.steps
        if self._sick or not self._schedule.is_due(step):
            return
        began = now()
        found = [getattr(one, "values", one) for one in gradients or () if one is not None]
        with quiet():
            self._look(optimizer, [one for one in found if is_float(one)])
        self._schedule.looked(step, now() - began)

    @guarded
    def _sample(self, optimizer: Any, gradients: Any, variables: Any, loss: Optional[float]) -> None:
        device = getattr(next((one for one in gradients or () if one is not None), None), "device", "")
        if "CPU" in str(device):
            with quiet():
                _, error = outcome(self._samples.applied, optimizer, gradients, variables, loss)
            if error is not None:
                self._samples.give_up(error)

    def _look(self, optimizer: Any, gradients: List[Any]) -> None:
        if first_bad(gradients) is not None:
            self._sick = True
            text = "the loss was finite and a gradient was not; an eager step of the script's own cannot be repeated"
            found = self._of_batch()
            self._tell(GRADIENT, found or Examined(BACKWARD, False, text, {}), rate_of(optimizer))
            return
        if gradients:
            norm = math.sqrt(sum(sum_of_squares(one) or 0.0 for one in gradients))
            self._gradients.add(self._recorder.steps, norm)
            self._recorder.writer.value(time.time(), self._recorder.steps, "gradient_norm", norm)
            values = self._values()
            if values is not None:
                values.measured = True
        held = [getattr(one, "value", one) for one in getattr(optimizer, "variables", ())]
        trained = [getattr(one, "value", one) for one in keras_seams.trained_by(optimizer)]
        for kind, variables in ((WEIGHTS, trained), (SLOT, held)):
            if any(is_float(one) and not is_finite(one) for one in variables):
                self._sick = True
                self._tell(kind, self._of_batch() or Examined(UNKNOWN, False, "seen after the update", {}))
                return

    def _of_batch(self) -> Optional[Examined]:
        leaves = [one for one in self._tf.nest.flatten(self._batch) if is_float(one) and not is_finite(one)]
        if not leaves:
            return None
        names = [id(one) for one in self._tf.nest.flatten(self._batch)]
        number = names.index(id(leaves[0]))
        leaf = Leaf("x" if number == 0 else f"part {number} of the batch", number > 0, leaves[0])
        return of_batch(leaf)._replace(reproduced=False, replay="seen in the batch that was handed out last")

    def _tell(self, seen_in: str, examined: Examined, rate: Optional[float] = None) -> None:
        if self._told >= TELLINGS:
            return
        self._told += 1
        before: Before = {
            "losses": self._losses.told(), "gradient_norms": self._gradients.told(), "rate": told(rate),
        }  # fmt: skip
        step = self._recorder.steps + (1 if seen_in == LOSS else 0)
        facts: NonFinite = {
            "step": step,
            "seen_at": step,
            "seen_in": seen_in,
            "origin": examined.origin,
            "reproduced": None,
            "replay": examined.replay,
            "at": examined.at,
            "values": examined.values,
            "before": before,
        }
        if examined.input is not None:
            facts["input"] = examined.input
        tell_non_finite(self._recorder, facts)
