"""Hugging Face's Trainer: out of memory in its training step is survived with the same batch.

The seam is `compute_loss`, whoever wrote it, while `train` runs: it is called as a module is, with parts of the inputs.
Backward, loss scale, accumulation and update are the Trainer's own, with the loss of the whole batch.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Dict, Optional

from ..never_raise import guarded
from ..seams import CHECKPOINT, RESCUE, RESUME, Abilities
from ..settings import checkpoint_wanted, rescue_wanted
from ..telemetry import Recorder
from ..user_errors import passing
from . import hf_resume, seams
from .batch_function import LossFunction
from .logged_metrics import follow_hf
from .loop_rescue import LoopRescue, RescuedModule, of_process
from .step_undo import shadowed


def install(recorder: Recorder, name: str) -> None:
    version = str(getattr(sys.modules.get("transformers"), "__version__", "?"))
    can = Abilities("Transformers", version, seams.HF_SEEN, seams.of_hf(name))
    if reason := hf_resume.why_not():
        can.cannot(CHECKPOINT, reason)
        can.cannot(RESUME, reason)
    kept, rescued = checkpoint_wanted(recorder.settings), rescue_wanted(recorder.settings)
    can.tell(recorder, "transformers", [*([RESCUE] if rescued else []), *([CHECKPOINT, RESUME] if kept else [])])
    if kept and can.can(CHECKPOINT) and can.can(RESUME):
        hf_resume.install(name)
    if rescued and can.can(RESCUE):
        _take_over(recorder, name)
    guarded(follow_hf)(sys.modules[name].Trainer)


def _take_over(recorder: Recorder, name: str) -> None:
    trainer_class: Any = sys.modules[name].Trainer
    train = trainer_class.train
    rescue = of_process(recorder, sys.modules["torch"])
    compute_loss_of = guarded(functools.partial(_rescued, rescue))

    @functools.wraps(train)
    def own_train(self: Any, *args: Any, **kwargs: Any) -> Any:
        compute_loss = compute_loss_of(self)
        with passing:
            if compute_loss is None:
                return train(self, *args, **kwargs)
            with shadowed(self, "compute_loss", compute_loss):
                return train(self, *args, **kwargs)

    trainer_class.train = own_train


def _rescued(rescue: LoopRescue, trainer: Any) -> Any:
    own = trainer.compute_loss
    known: Dict[int, RescuedModule] = {}  # by model; for as long as `train` runs

    @guarded
    def outermost(function: LossFunction) -> Optional[RescuedModule]:
        model = function.model
        if id(model) not in known:
            known[id(model)] = RescuedModule(rescue, function, _why_not(trainer))
        return known[id(model)]

    @functools.wraps(own)
    def compute_loss(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not rescue.takes_hold(model):
            return own(model, inputs, *args, **kwargs)
        mixed = bool(trainer.args.bf16 or trainer.args.fp16)
        function = LossFunction(model, functools.partial(own, model), mixed)
        with passing:
            return rescue.run(outermost(function), function, (inputs, *args), kwargs)

    return compute_loss


def _why_not(trainer: Any) -> str:
    """What cannot be split, in words; "" where it may be tried."""
    if trainer.args.n_gpu > 1 or getattr(trainer.accelerator, "parallelism_config", None) is not None:
        return "training on several devices is left as it is"
    if getattr(getattr(trainer.model, "config", None), "output_router_logits", False):
        return "the loss of its router is over the whole batch"
    return ""
