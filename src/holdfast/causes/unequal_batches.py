from __future__ import annotations

from holdfast.causes.form import CauseRecord, torch

CAUSE = CauseRecord(
    id="unequal-batches",
    family="ranks",
    title="Ranks have different numbers of batches",
    meaning="A rank with one batch more waits in a collective that the others never enter. Nothing is wrong with any of them alone.",
    sure="Steps taken by each rank, and the stack of the one that waits.",
    recipes=(
        torch(
            "Give every rank the same number of batches",
            "DataLoader(dataset, sampler=DistributedSampler(dataset, drop_last=True),\n           drop_last=True)",
        ),
        torch(
            "Let a rank that is done join in", "with model.join():  # DistributedDataParallel\n    train_one_epoch()"
        ),
    ),
)
