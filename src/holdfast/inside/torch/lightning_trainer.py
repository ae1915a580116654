"""Lightning's Trainer with automatic optimization: out of memory in a step is survived with the same batch.

The seam is `training_step`, called as a module is, with parts of the batch. Hooks, dropping gradients, backward and update
are Lightning's own, with the loss of the whole batch. With manual optimization the calls of modules are the seam.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Mapping
from typing import Any, List, Optional, Tuple

from ..never_raise import guarded
from ..rescue_engine import CannotSplit
from ..seams import RESCUE, Abilities, Seam
from ..settings import rescue_wanted
from ..telemetry import Recorder
from ..user_errors import passing
from . import seams
from .batch_function import PIECE, LossFunction
from .lightning_logs import Learnt, Logs
from .loop_rescue import LoopRescue, RescuedModule, of_process
from .step_undo import shadowed
from .tensor_nests import tensors_of

ONE_DEVICE = "SingleDeviceStrategy"


class _TrainingStep(LossFunction):
    def __init__(self, trainer: Any, model: Any, learnt: Learnt) -> None:
        super().__init__(model, model.training_step, mixed="16" in str(trainer.precision))
        self._logs = Logs(trainer, learnt)
        self._last: Any = None  # what the last piece returned

    def part(self, why: str, args: Any, kwargs: Any) -> List[Any]:
        # In a backward pass Lightning takes itself to be in another hook, in which nothing may be logged.
        with shadowed(self.model, seams.LIGHTNING_HOOK, "training_step"), self._logs.listening(why):
            found = super().part(why, args, kwargs)
        loss = self.followed(found)
        if loss is None:
            raise CannotSplit("its training_step returns no loss")
        if why != PIECE:
            return [loss.reshape(())]
        self._last = found
        extra = found if isinstance(found, Mapping) else {}
        rows = len(next(one for one in tensors_of((args, kwargs), sys.modules["torch"]) if one.dim()))
        return [loss.reshape(()), {key: value for key, value in extra.items() if _has_rows(value, rows)}]

    def followed(self, found: Any) -> Any:
        return found.get("loss") if isinstance(found, Mapping) else found

    def failed(self) -> None:
        self._logs.failed()

    def joined(self, found: Any, call: Any) -> Any:
        loss, by_rows = found
        self._logs.ends(call)
        if not isinstance(self._last, Mapping):
            last, joined = set(), loss
        else:
            joined = {**self._last, **by_rows, "loss": loss}
            last = set(joined) - set(by_rows) - {"loss"}
        named = sorted(self._logs.last | last)
        if named:
            text = f"of what training_step logs or returns, the last micro-batch's is told: {', '.join(named)}"
            call.disclosed.append(text)
        return joined


def _has_rows(value: Any, rows: int) -> bool:
    return isinstance(value, sys.modules["torch"].Tensor) and value.dim() > 0 and value.shape[0] == rows


def install(recorder: Recorder, name: str) -> None:
    if not rescue_wanted(recorder.settings) or not _able(recorder, name, seams.lightning_step(name)):
        return
    loop_class = seams.lightning_loop_class(name)
    original = getattr(loop_class, seams.LIGHTNING_STEP)
    rescue = of_process(recorder, sys.modules["torch"])
    known: Any = weakref.WeakKeyDictionary()
    step_of = guarded(functools.partial(_step_of, rescue, known))
    able = guarded(functools.lru_cache(None)(lambda: _able(recorder, name, seams.of_lightning(name))))

    @functools.wraps(original)
    def _training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = step_of(self.trainer) if able() else None
        with passing:
            if found is None:
                return original(self, *args, **kwargs)
            outermost, function = found

            def training_step(*args: Any, **kwargs: Any) -> Any:
                return rescue.run(outermost, function, args, kwargs)

            with shadowed(function.model, "training_step", training_step):
                return original(self, *args, **kwargs)

    setattr(loop_class, seams.LIGHTNING_STEP, _training_step)


def _able(recorder: Recorder, name: str, names: Tuple[Seam, ...]) -> bool:
    """While its import goes on, much of Lightning is not there yet: the rest is looked for at the first step."""
    version = str(getattr(sys.modules.get(name.split(".loops.", 1)[0]), "__version__", "?"))
    can = Abilities("Lightning", version, seams.LIGHTNING_SEEN, names)
    if len(names) > 1 or not can.can(RESCUE):
        can.tell(recorder, "lightning", [RESCUE])
    return can.can(RESCUE)


def _step_of(rescue: LoopRescue, known: Any, trainer: Any) -> Optional[Tuple[RescuedModule, _TrainingStep]]:
    model = trainer.lightning_module
    if not rescue.takes_hold(model):
        return None
    begins = trainer.fit_loop.epoch_loop.batch_progress.current.ready <= 1
    if model not in known or begins:  # metrics may have come or gone
        learnt = Learnt(model)
        if model in known:
            outermost, before = known[model]
            learnt.ways = before.ways
        else:
            function = LossFunction(model, model.training_step)
            outermost = RescuedModule(rescue, function, _why_not(trainer))
        known[model] = outermost, learnt
    outermost, learnt = known[model]
    return outermost, _TrainingStep(trainer, model, learnt)


def _why_not(trainer: Any) -> str:
    """What cannot be split, in words; "" where it may be tried."""
    strategy = type(trainer.strategy).__name__
    if strategy != ONE_DEVICE or trainer.world_size > 1:
        return f"training by {strategy} is left as it is"
    return ""
