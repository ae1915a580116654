"""Hugging Face's Trainer: out of memory in its training step is survived with the same batch.

The seam is `Trainer.training_step`, forward and backward of one batch of those that are accumulated. In pieces it is the
same function on a part of the inputs, with a `compute_loss` whose result has the part's share: whoever wrote that one.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from typing import Any, Iterator, Optional

from ..never_raise import guarded, unseen
from ..out_of_memory import is_out_of_memory
from ..telemetry import Recorder
from .batch_split import Split, Step
from .step_undo import shadowed


class _Step(Step):
    def __init__(self, original: Any, trainer: Any, model: Any, inputs: Any, rest: Any, named: Any) -> None:
        self._original, self._trainer = original, trainer
        self.model, self.batch = model, inputs
        self._rest, self._named = rest, named
        self.whole = functools.partial(original, trainer, model, inputs, *rest, **named)  # type: ignore[method-assign]
        self._total: Any = None

    @property
    def mixed(self) -> bool:  # type: ignore[override]
        return bool(self._trainer.args.bf16 or self._trainer.args.fp16)

    def begins(self) -> None:
        self._total = None

    def piece(self, batch: Any, share: float) -> None:
        inner = self._trainer.compute_loss

        def compute_loss(*args: Any, **named: Any) -> Any:
            found = inner(*args, **named)
            return (found[0] * share, *found[1:]) if isinstance(found, tuple) else found * share

        with shadowed(self._trainer, "compute_loss", compute_loss):
            loss = self._original(self._trainer, self.model, batch, *self._rest, **self._named)
        self._total = loss if self._total is None else self._total + loss

    def ends(self, rows: list[int], shares: list[float], known: list[str]) -> Any:
        return self._total

    def trial(self, batch: Any, gradients: bool) -> Any:
        with self._unscaled():
            if gradients:
                return self._original(self._trainer, self.model, batch, *self._rest, **self._named)
            items = {"num_items_in_batch": self._rest[0]} if self._rest else self._named
            with sys.modules["torch"].no_grad(), self._trainer.compute_loss_context_manager():
                return self._trainer.compute_loss(self.model, self._trainer._prepare_inputs(batch), **items)

    @contextlib.contextmanager
    def _unscaled(self) -> Iterator[None]:
        """A loss scale that is still to be found may overflow, and that says nothing about rows."""
        accelerator = self._trainer.accelerator
        scaler = accelerator.scaler
        accelerator.scaler = None
        try:
            yield
        finally:
            accelerator.scaler = scaler


def install(recorder: Recorder, name: str) -> None:
    trainer_class: Any = sys.modules[name].Trainer
    original, train = trainer_class.training_step, trainer_class.train
    known: Any = weakref.WeakKeyDictionary()

    @guarded
    def split_of(trainer: Any, model: Any) -> Optional[Split]:
        if trainer not in known:
            known[trainer] = Split(recorder, model, why_not(trainer, trainer_class, model))
        return known[trainer]  # type: ignore[no-any-return]

    def training_step(self: Any, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        split = known.get(self) or split_of(self, model)
        if split is None:
            return original(self, model, inputs, *args, **kwargs)
        try:
            return split.run(_Step(original, self, model, inputs, args, kwargs))
        except BaseException as error:
            unseen(error)
            raise

    def own_train(self: Any, *args: Any, **kwargs: Any) -> Any:
        known.pop(self, None)  # the model may have been moved or changed since the last one
        try:
            return train(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            if self not in known and is_out_of_memory(error):
                recorder.event("rescue.refused", reason="its training_step is its own", where="train")
            raise

    trainer_class.training_step = functools.wraps(original)(training_step)
    trainer_class.train = functools.wraps(train)(own_train)


def why_not(trainer: Any, trainer_class: Any, model: Any) -> str:
    """What cannot be split, in words; "" where it may be tried."""
    args, accelerator = trainer.args, trainer.accelerator
    kind = str(getattr(accelerator.distributed_type, "value", accelerator.distributed_type))
    if args.n_gpu > 1 or kind != "NO" or args.world_size > 1:
        return "training on several devices is left as it is"
    if getattr(accelerator, "parallelism_config", None) is not None:
        return "training on several devices is left as it is"
    if type(trainer)._prepare_inputs is not trainer_class._prepare_inputs:
        return "its _prepare_inputs is its own, and may not be the same twice"
    if "lomo" in str(getattr(args, "optim", "")).lower() or any(
        getattr(parameter, "_post_accumulate_grad_hooks", None) for parameter in model.parameters()
    ):
        return "weights are updated within the backward pass"
    if getattr(getattr(trainer.model, "config", None), "output_router_logits", False):
        return "the loss of its router is over the whole batch"
    return ""
