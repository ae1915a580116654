"""A batch without its bad rows: the script's lines that compute the loss, run with the others."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Optional

from ...never_raise import outcome
from ...numerics.events import NonFinite
from .. import among_ranks, random_state
from ..outermost_call import running_again
from .finite import all_finite, bad_rows
from .origin import Scene, script_of


def without_rows(scene: Scene, facts: NonFinite) -> Any:
    """The loss of the good rows, with its graph; None where that cannot be had."""
    if not scene.has_room:
        return None
    torch = scene.torch
    script = script_of(torch, scene.frames)
    bad = next((value for name, value in scene.inputs() if name == facts["input"]["name"]), None)
    if script is None or bad is None or not bad.dim():
        return None
    rows = set(bad_rows(torch, bad))
    count = int(bad.shape[0])
    if not rows or len(rows) >= count:
        return None
    kept = torch.tensor([row for row in range(count) if row not in rows], device=bad.device)
    changed = _chosen(torch, script.variables, script.own, kept, count)
    given = {
        id(value) for _, value in scene.given() if value.grad_fn is None and value.dim() and value.shape[0] == count
    }
    if not given or not given <= {id(script.variables[name]) for name in changed}:
        return None  # what the model was given is no variable of the batch: its rows would stay
    random = random_state.capture(torch)

    def again() -> Any:
        with running_again(), torch.enable_grad(), among_ranks.refusing_collectives(torch):
            return script.run(changed)

    loss, _ = outcome(again)
    random_state.restore(torch, random)
    return loss if _is_loss(torch, loss, scene.loss) else None


def _chosen(torch: Any, variables: Dict[str, Any], own: Dict[str, Any], kept: Any, count: int) -> Dict[str, Any]:
    """The rows of every variable of the batch: what has as many of them, and no graph."""
    changed: Dict[str, Any] = {}
    for name in own:
        value = variables.get(name)
        if isinstance(value, torch.Tensor) and not value.requires_grad and value.dim() and value.shape[0] == count:
            with contextlib.suppress(RuntimeError, IndexError):
                changed[name] = value.index_select(0, kept.to(value.device))
    return changed


def _is_loss(torch: Any, loss: Any, instead_of: Any) -> bool:
    return (
        isinstance(loss, torch.Tensor)
        and loss.numel() == 1
        and loss.requires_grad
        and loss.dtype == instead_of.dtype
        and all_finite(torch, loss)
    )


def shown_as(torch: Any, loss: Any, other: Any) -> Optional[bool]:
    """The script's own tensor gets the value, so that what it adds up and prints is a number."""
    with torch.no_grad():
        loss.data.copy_(other.detach().reshape(loss.shape))
    return True
