"""A metric that becomes NaN or infinite while the loss is finite: read where Lightning's or Hugging Face's trainer logs it.

It is told once for each name, and nothing is done about it. One that had no number so far is undefined by design, as far as anybody
can tell: of a class that is not in the data, say.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, Dict, Optional, Set

from ..never_raise import guarded
from ..numerics import events
from ..numerics.events import NonFinite
from ..numerics.plain_numbers import told
from ..telemetry import Recorder
from ..user_errors import passing
from .numerics import hooks
from .numerics.origin import Scene

NO_METRICS = ("loss", "grad_norm", "learning_rate")  # in names: what is looked at where it is made
NAMES = 1000  # that are followed


class LoggedMetrics:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._had_numbers: Set[str] = set()
        self._told: Set[str] = set()

    def logged(self, name: Any, value: Any) -> None:
        number = self._number(value)
        if number is None or name in self._told or any(word in str(name).lower() for word in NO_METRICS):
            return
        if math.isfinite(number):
            if len(self._had_numbers) < NAMES:
                self._had_numbers.add(name)
        elif name in self._had_numbers:
            self._tell(str(name), number)

    def _number(self, value: Any) -> Optional[float]:
        """None of what is on a device: reading it would wait."""
        if isinstance(value, float):
            return value
        if isinstance(value, self._torch.Tensor) and value.is_cpu and value.numel() == 1:
            return float(value.detach())
        return None

    def _tell(self, name: str, number: float) -> None:
        looks = hooks.of_process()
        if looks is None or looks.notices.lasting:
            return  # the loss is not finite, either, and that was told
        self._told.add(name)
        step = max(1, looks.recorder.steps)
        facts: NonFinite = {
            "step": step,
            "seen_at": step,
            "seen_in": events.METRIC,
            "origin": events.UNKNOWN,
            "reproduced": None,
            "replay": f"{name} was logged as {told(number)}, after numbers; the loss is finite, so training itself is not touched by it",
            "skipped_by_scaler": False,
            "had_numbers": True,
        }
        looks.notices.tell(facts, Scene(self._torch, None, None, []))


def install(_recorder: Recorder, name: str) -> None:
    """Of Lightning: `self.log`, which `self.log_dict` calls for each."""
    kind: Any = sys.modules[name].LightningModule
    original, logged = kind.log, guarded(LoggedMetrics(sys.modules["torch"]).logged)

    @functools.wraps(original)
    def log(self: Any, name: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        with passing:
            result = original(self, name, value, *args, **kwargs)
        logged(name, value)
        return result

    kind.log = log


def follow_hf(trainer_class: Any) -> None:
    original, metrics = trainer_class.log, LoggedMetrics(sys.modules["torch"])

    @guarded
    def all_logged(logs: Dict[str, Any]) -> None:
        for name, value in list(logs.items()):
            metrics.logged(name, value)

    @functools.wraps(original)
    def log(self: Any, logs: Any, *args: Any, **kwargs: Any) -> Any:
        all_logged(logs)
        with passing:
            return original(self, logs, *args, **kwargs)

    trainer_class.log = log
