"""What kind of loss a model was compiled with."""

from __future__ import annotations

import re
from typing import Any, Optional

from ...numerics.events import Loss
from ...numerics.user_lines import described, is_users

FAMILIES = {
    "sparse": ("sparse_categorical_crossentropy",),
    "categorical": ("categorical_crossentropy", "categorical_focal_crossentropy"),
    "binary": ("binary_crossentropy", "binary_focal_crossentropy"),
    "divergence": ("kl_divergence", "kullback_leibler_divergence", "kld", "kldivergence"),
    "hinge": ("hinge", "squared_hinge", "categorical_hinge"),
    "regression": [
        "mean_squared_error",
        "mse",
        "mean_absolute_error",
        "mae",
        "mean_absolute_percentage_error",
        "mape",
        "huber",
        "log_cosh",
        "logcosh",
        "mean_squared_logarithmic_error",
        "msle",
    ],
}


def the_loss(model: Any) -> Any:
    """The only one; None where there are several, or none."""
    loss = getattr(model, "loss", None)
    if isinstance(loss, dict):
        loss = list(loss.values())
    if isinstance(loss, (list, tuple)):
        return loss[0] if len(loss) == 1 else None
    return loss


def loss_facts(model: Any) -> Loss:
    return facts_of(the_loss(model))


def facts_of(loss: Any) -> Loss:
    if loss is None:
        return {}
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", None) or type(loss).__name__
    function = getattr(loss, "fn", loss)
    code = getattr(function, "__code__", None) or getattr(getattr(type(loss), "call", None), "__code__", None)
    own = code is not None and is_users(code.co_filename)
    found: Loss = {"name": str(name), "family": None if own else family_of(str(name))}
    if not own:
        found["from_logits"] = _from_logits(loss)
    elif code is not None:
        found["line"] = described(code.co_filename, code.co_firstlineno)[0]
    return found


def family_of(name: str) -> Optional[str]:
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return next((family for family, names in FAMILIES.items() if plain in names), None)


def _from_logits(loss: Any) -> Optional[bool]:
    if isinstance(loss, str) or not hasattr(loss, "get_config"):
        return False  # what Keras takes where nothing is said
    return bool(loss.get_config().get("from_logits", False))
