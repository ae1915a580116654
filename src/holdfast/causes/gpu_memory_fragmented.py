from __future__ import annotations

from holdfast.causes.form import KERAS, CauseRecord, shell, torch

CAUSE = CauseRecord(
    id="gpu-memory-fragmented",
    family="memory",
    title="GPU memory is in pieces",
    meaning="Enough memory is free, but not in one piece of the size asked for. Batches of changing size cause that.",
    sure="What is reserved and unused is more than what was asked for.",
    says_more_than=("gpu-memory-exhausted",),
    recipes=(
        shell("Let the allocator grow its pieces", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py"),
        torch(
            "Pad to a few fixed sizes",
            "length = -(-x.shape[1] // 64) * 64\nx = torch.nn.functional.pad(x, (0, length - x.shape[1]))",
        ),
        shell("Another allocator", "TF_GPU_ALLOCATOR=cuda_malloc_async python train.py", KERAS),
    ),
)
