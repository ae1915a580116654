"""The step of one Keras model, watched. Its logs are means over the epoch: one turns non-finite at the exact step."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from ...telemetry import Recorder
from ...tensorflow.numerics.step_watch import StepWatch
from .. import seams
from ..undo import optimizers_of
from .state import loss_key, optimizer_of, state_variables


class ModelWatch(StepWatch):
    def __init__(self, recorder: Recorder, tf: Any, model_ref: Callable[[], Any]) -> None:
        super().__init__(recorder, tf)
        self.model_ref = model_ref
        # Looks at the state where several steps are made at once.
        self.at_once: Optional[Callable[[float], None]] = None
        self.rate_is_set: Callable[[float], bool] = lambda rate: False  # whether the next step is to be looked at

    def between_steps(self, share: float) -> None:
        if self.flight is None and self.at_once is not None:
            self.at_once(share)
        super().between_steps(share)

    def assigned(self, variable: Any, value: Any) -> None:
        super().assigned(variable, value)
        model = self.model_ref() if self.flight is not None and variable.shape.rank == 0 else None
        rate = getattr(optimizer_of(model), "learning_rate", None)
        if rate is not None and seams.value_or_itself(rate) is variable and self.rate_is_set(float(value)):
            self._room = 0

    def variables(self) -> Optional[Tuple[List[Any], List[str]]]:
        model = self.model_ref()
        if model is None:
            return None
        optimizers = optimizers_of(model)
        if optimizers and not any(one.built for one in optimizers):
            return None
        return state_variables(model, [one for one in optimizers if one.built])

    def is_alive(self) -> bool:
        return self.model_ref() is not None

    def key_of(self, logs: Any) -> Any:
        return loss_key(logs)
