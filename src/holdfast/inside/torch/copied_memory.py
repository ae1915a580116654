"""Memory of our own for a checkpoint's copy: not the allocator's, which would keep it, and not that of forked workers.

Pages that are touched for the first time cost more than the copy itself (134 ms for 94 MB, then 19 ms), and so do those that
were shared with a worker by a fork. So they are touched beforehand, by a thread, and no fork shares them.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Optional

WORTH_WAITING_BYTES = 8 << 20
_NOT_FORKED: Optional[int] = getattr(mmap, "MADV_DONTFORK", None)


def own_memory(torch: Any, size: int) -> Any:
    """A tensor of bytes, which goes back to the system with its last reference."""
    if not size:
        return torch.empty(0, dtype=torch.uint8)
    area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if _NOT_FORKED is not None:
        area.madvise(_NOT_FORKED)
    return torch.frombuffer(area, dtype=torch.uint8)


def touched(memory: Any) -> Any:
    """All its pages are there afterwards. Python's lock is not held meanwhile."""
    ctypes.memset(memory.data_ptr(), 0, memory.numel())
    return memory
