"""What is called with a batch and may be run in pieces of it: a module, or a trainer's function that computes a loss."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable

from .module_attributes import attributes_put_back

TRIAL, PIECE, AGAIN = "trial", "piece", "again"  # a few rows, of which nothing stays; forward; for the gradient


class BatchFunction:
    """A module's call. Made for one batch, so that nothing of the script's is kept."""

    is_module = True
    mixed = False  # computes in half precision by itself
    share_by = ""  # how a number it returns is put together, where the script says so; then nothing else is tried

    def __init__(self, model: Any, function: Callable[..., Any]) -> None:
        self.model = model
        self.whole: Callable[..., Any] = functools.partial(function, model)

    def part(self, _why: str, args: Any, kwargs: Any) -> Any:
        return self.whole(*args, **kwargs)

    def failed(self) -> None:
        """The whole of it did: what only this function knows of is put back."""

    def followed(self, found: Any) -> Any:
        """Of what `whole` returned: the tensors that `part` returns, too, in this order, as far as they have gradients."""
        return found

    def joined(self, found: Any, _call: Any) -> Any:
        """What `whole` would have returned, from what the parts did."""
        return found


class LossFunction(BatchFunction):
    """A function of a trainer's or a script's own. What it keeps on the model it keeps once for each piece, as with smaller
    batches, and not again where a piece is run for its gradient."""

    is_module = False

    def __init__(self, model: Any, function: Callable[..., Any], mixed: bool = False, share_by: str = "") -> None:
        self.model, self.whole = model, function
        self.mixed, self.share_by = mixed, share_by

    def part(self, why: str, args: Any, kwargs: Any) -> Any:
        with contextlib.nullcontext() if why == PIECE else attributes_put_back(self.model):
            return self.whole(*args, **kwargs)
