"""Private names of PyTorch's that are about several ranks; all others stand in `seams`, where they are listed, too."""

from __future__ import annotations

from typing import Any, Optional, Tuple

COLLECTIVES = ("c10d", "_c10d_functional", "c10d_functional")  # the libraries of operators that they are in


def collectives_begun(torch: Any) -> Optional[int]:
    """In all groups of processes that this one is in; None where this PyTorch does not tell."""
    groups = getattr(getattr(torch.distributed.distributed_c10d, "_world", None), "pg_map", None)
    if groups is None or not all(hasattr(group, "_get_sequence_number_for_group") for group in groups):
        return None
    return sum(int(group._get_sequence_number_for_group()) for group in groups)


def has_averaged(torch: Any, wrapper: Any) -> bool:
    """Whether a DistributedDataParallel has averaged all gradients of the last backward pass over all ranks, by its own way:
    not within `no_sync`, not over a part of the ranks, and without a hook that sends something else."""
    return (
        getattr(wrapper, "_comm_hooks", None) == []
        and not getattr(wrapper, "_delay_all_reduce_all_params", False)
        and not getattr(wrapper, "_use_python_reducer", False)
        and not wrapper.parameters_to_ignore
        and bool(wrapper.require_backward_grad_sync)
        and bool(wrapper.require_forward_param_sync)  # as the last forward pass with gradients left it
        and torch.distributed.get_world_size(wrapper.process_group) == torch.distributed.get_world_size()
    )


def alone(wrapper: Any) -> Tuple[bool, bool]:
    """Its next forward passes send nothing and prepare nothing to be sent; what is to be put back by `together`."""
    before = wrapper.require_backward_grad_sync, wrapper.require_forward_param_sync
    wrapper.require_backward_grad_sync = wrapper.require_forward_param_sync = False
    return before


def together(wrapper: Any, before: Tuple[bool, bool]) -> None:
    wrapper.require_backward_grad_sync, wrapper.require_forward_param_sync = before


def dispatch_mode(torch: Any) -> Any:
    """A class whose objects are asked for each operation while they are entered."""
    return torch.utils._python_dispatch.TorchDispatchMode
