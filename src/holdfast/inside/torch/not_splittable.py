"""Modules whose call is not run in pieces, and why, in words."""

from __future__ import annotations

from typing import Any

SEVERAL = {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine"}
WEIGHTS = ("torch.nn.utils", "torch.ao.")  # hooks that make a weight anew before each call


def why_not(module: Any, torch: Any, as_module: bool = True) -> str:
    """ "" where it may be tried. For a trainer's function hooks and compiled modules are those of smaller batches."""
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return "training on several devices is left as it is"
    for one in module.modules():
        kind = type(one).__name__
        if kind in SEVERAL:
            return "training on several devices is left as it is"
        if not as_module:
            continue
        if kind == "OptimizedModule" or getattr(one, "_compiled_call_impl", None) is not None:
            return "a module that is compiled is left as it is"
        if one._forward_hooks or one._backward_hooks or _looks_at_inputs(one):
            return "hooks of its modules would see parts of a batch"
    for parameter in module.parameters():
        if getattr(parameter, "_post_accumulate_grad_hooks", None):
            return "weights are updated within the backward pass"
        if parameter._backward_hooks:
            return "hooks on its gradients would see parts of a batch"
    return ""


def _looks_at_inputs(module: Any) -> bool:
    hooks = module._forward_pre_hooks.values()
    return any(not str(getattr(type(hook), "__module__", "")).startswith(WEIGHTS) for hook in hooks)


def normalises(module: Any, torch: Any) -> bool:
    kind = torch.nn.modules.batchnorm._NormBase
    return any(isinstance(one, kind) and type(one).__name__.find("Instance") < 0 for one in module.modules())
