"""Hugging Face's Trainer goes on after a kill: its loop is followed as one of the script's own.

The functions of its file, and accelerate's loader, which is one batch ahead, hold the place in their variables; the rest of
the state lies in the objects registered here. Turned down: the Trainer's own checkpoints. They hold no state of people's
callbacks, draw the data's random numbers anew, and count epochs by the length of the data.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Dict, Optional, Tuple

from ..never_raise import guarded
from ..script_state import frames
from ..script_state.loop_checkpoint import LoopCheckpoints
from ..script_state.rank_checkpoints import RankCheckpoints
from ..user_errors import passing
from . import kept_loops, seams
from .trainer_objects import all_but, everything, leave, plain_values, register, these

LEFT_TO_THE_PROCESS = ("args", "compute_loss", "data_collator", "train_dataset", "eval_dataset", "processing_class")
OWN = "resume_from_checkpoint"
STATE = "trainer_state.json"  # written last: without it a kill came in between, and the Trainer cannot load it


def why_not() -> str:
    """Nothing where its loop can be followed."""
    if sys.version_info < (3, 11):
        return "before Python 3.11 it cannot be told which call of a line of the Trainer's runs"
    if isinstance(kept_loops.of_process(), RankCheckpoints):  # accelerate's loaders for several ranks are others
        return "not made for several ranks of the Trainer yet"
    return ""


def install(name: str) -> None:
    """`name` is that of the Trainer's module."""
    kept = kept_loops.of_process()
    if kept is None:
        return
    for module in (name, seams.ACCELERATE_LOADERS):
        frames.follow(str(sys.modules[module].__file__))
    trainer_class: Any = sys.modules[name].Trainer
    _register(trainer_class)
    if kept.goal is not None:
        trainer_class.train = _from_ours(kept, trainer_class.train)


def _register(trainer_class: Any) -> None:
    callbacks: Any = sys.modules[seams.HF_CALLBACKS]
    register(trainer_class, all_but(*LEFT_TO_THE_PROCESS), is_made=False)
    leave("transformers.integrations", "transformers.utils.notebook")  # what they hold is of the process: writers, runs
    register(callbacks.ProgressCallback, these())
    for kind in (callbacks.TrainerState, callbacks.TrainerControl, callbacks.TrainerCallback):
        register(kind, everything)
    accelerator, gradients = seams.accelerate_classes()
    register(accelerator, these("step", "scaler", "gradient_state"))
    register(gradients, plain_values)
    register(seams.accelerate_loader(), lambda name, value: name == seams.INNER_LOADER or plain_values(name, value))


def _from_ours(kept: LoopCheckpoints, train: Any) -> Any:
    """A script that would go on from a checkpoint of its own, of an earlier attempt, goes on from ours where it is newer."""
    path_of = guarded(_path_of)

    @functools.wraps(train)
    def own_train(self: Any, *args: Any, **kwargs: Any) -> Any:
        path = path_of(self, args, kwargs)
        if (
            path
            and kept.is_newer_than(path)
            and (kept.own.holds(path) or not os.path.exists(os.path.join(path, STATE)))
        ):
            args, kwargs = ((None, *args[1:]), kwargs) if args else (args, {**kwargs, OWN: None})
        with passing:
            return train(self, *args, **kwargs)

    return own_train


def _path_of(trainer: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[str]:
    given = args[0] if args else kwargs.get(OWN)
    if given is True:
        last: Any = sys.modules[seams.HF_PATHS].get_last_checkpoint
        given = last(trainer.args.output_dir)
    return str(given) if given else None
