"""Private names of PyTorch's that are about several ranks; all others stand in `seams`, where they are listed, too."""

from __future__ import annotations

from typing import Any, Optional

COLLECTIVES = ("c10d", "_c10d_functional", "c10d_functional")  # the libraries of operators that they are in


def collectives_begun(torch: Any) -> Optional[int]:
    """In all groups of processes that this one is in; None where this PyTorch does not tell."""
    groups = getattr(getattr(torch.distributed.distributed_c10d, "_world", None), "pg_map", None)
    if groups is None or not all(hasattr(group, "_get_sequence_number_for_group") for group in groups):
        return None
    return sum(int(group._get_sequence_number_for_group()) for group in groups)


def dispatch_mode(torch: Any) -> Any:
    """A class whose objects are asked for each operation while they are entered."""
    return torch.utils._python_dispatch.TorchDispatchMode
