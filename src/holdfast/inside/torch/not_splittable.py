"""Modules whose call is not run in pieces, and why, in words."""

from __future__ import annotations

from typing import Any, Iterable

from . import among_ranks, seams

SEVERAL = {among_ranks.WRAPPER, "DataParallel", "DeepSpeedEngine"}
SHARDED = "FullyShardedDataParallel"
SHARD = "DTensor"  # the kind of a parameter that is spread over ranks
NORMALISES_OVER_RANKS = "SyncBatchNorm"
WEIGHTS = ("torch.nn.utils", "torch.ao.")  # hooks that make a weight anew before each call


def why_not(module: Any, torch: Any, as_module: bool = True) -> str:
    """ "" where it may be tried. For a trainer's function hooks and compiled modules are those of smaller batches."""
    several = among_ranks.are_several(torch)
    if several and (not as_module or among_ranks.sent(torch) is None):
        return "training on several devices is left as it is"
    for one in module.modules():
        kind = type(one).__name__
        if kind in SEVERAL:
            return "training on several devices is left as it is"
        if kind == SHARDED:
            return "its weights are spread over several ranks"
        if several and kind == NORMALISES_OVER_RANKS:
            return among_ranks.TALKS
        if not as_module:
            continue
        if seams.is_compiled(one):
            return "a module that is compiled is left as it is"
        if seams.has_hooks(one) or _looks_at_inputs(one):
            return "hooks of its modules would see parts of a batch"
    if is_spread(module.parameters()):
        return "its weights are spread over several ranks"
    for parameter in module.parameters():
        if seams.is_updated_in_backward(parameter):
            return "weights are updated within the backward pass"
        if seams.has_gradient_hooks(parameter):
            return "hooks on its gradients would see parts of a batch"
    return ""


def _looks_at_inputs(module: Any) -> bool:
    hooks = seams.hooks_on_inputs(module)
    return any(not str(getattr(type(hook), "__module__", "")).startswith(WEIGHTS) for hook in hooks)


def is_spread(parameters: Iterable[Any]) -> bool:
    return any(type(parameter).__name__ == SHARD for parameter in parameters)


def hands_on(module: Any) -> bool:
    """Its own call is none to be cut: that of the module which it holds is."""
    return type(module).__name__ == among_ranks.WRAPPER


def normalises(module: Any, torch: Any) -> bool:
    kind = seams.norm_class(torch)
    return any(isinstance(one, kind) and type(one).__name__.find("Instance") < 0 for one in module.modules())
