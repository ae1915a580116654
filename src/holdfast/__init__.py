"""Holdfast keeps neural-network training alive, and says why it died."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["attach", "backward", "data", "fit_batch", "keep", "plan", "step"]
PLAN_CALLS = ("fit_batch", "plan")

if TYPE_CHECKING:
    from holdfast import data
    from holdfast.inside.api import attach, backward, keep, step
    from holdfast.plan_calls import fit_batch, plan


def __getattr__(name: str) -> Any:
    """The API is loaded when it is used: the command line needs none of it."""
    if name == "data":
        return importlib.import_module("holdfast.data")
    if name in PLAN_CALLS:
        from holdfast import plan_calls  # noqa: PLC0415

        return getattr(plan_calls, name)
    if name in __all__:
        from holdfast.inside import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
