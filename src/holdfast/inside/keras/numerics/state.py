"""The variables of a model in training, and what each of them is."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ...numerics.events import METRIC, SLOT, WEIGHTS
from .. import seams
from ..saved_state import variables_of

CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")  # what an optimizer of Keras says of clipping


def state_variables(model: Any, optimizers: List[Any]) -> Tuple[List[Any], List[str]]:
    """TensorFlow's variables, weights first, with their kinds. A model may hold optimizers of its own (a GAN's)."""
    own = {id(one) for one in model.variables}
    metrics = {id(one) for one in model.metrics_variables}
    found = {id(one): one for one in variables_of(model)}
    found.update({id(one): one for optimizer in optimizers for one in optimizer.variables})
    variables = [one for one in found.values() if seams.value_of(one) is not None]
    kinds = [METRIC if id(one) in metrics else WEIGHTS if id(one) in own else SLOT for one in variables]
    return [seams.value_of(one) for one in variables], kinds


def loss_key(logs: Any) -> Optional[str]:
    """Under which name a step's logs have the loss."""
    if not isinstance(logs, dict):
        return None
    return "loss" if "loss" in logs else next((key for key in logs if "loss" in str(key)), None)


def loss_tracker(model: Any) -> Any:
    """The mean over the epoch whose value is told as `loss`; None in a model that has its own way."""
    found = next((one for one in model.metrics if one.name == "loss"), None)
    return found if hasattr(found, "total") and hasattr(found, "count") else None


def returned_loss(model: Any, logs: Any) -> Optional[float]:
    """Of a step of the script's own that tells its loss and keeps no mean of it. What a metric tells is of other steps."""
    key = loss_key(logs)
    value: Any = logs[key] if key is not None else None
    if getattr(value, "shape", None) != () or not hasattr(value, "numpy"):
        return None
    means = [one for one in getattr(model, "metrics", ()) if one.name == key]
    if any(float(getattr(one, "count", 1)) for one in means):
        return None
    found = float(value)
    return found if found or not means else None  # a mean of nothing is 0


def optimizer_of(model: Any) -> Any:
    """The one that makes the update: half precision wraps it."""
    optimizer = getattr(model, "optimizer", None)
    return getattr(optimizer, "inner_optimizer", optimizer)


def rate_of(model: Any) -> Optional[float]:
    optimizer = optimizer_of(model)
    rate = getattr(optimizer, "learning_rate", None)
    return None if rate is None else float(rate.numpy() if hasattr(rate, "numpy") else rate)
