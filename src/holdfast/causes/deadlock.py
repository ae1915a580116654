from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, python, rule, says, torch
from holdfast.causes.shared.recipes import STACKS

CAUSE = CauseRecord(
    id="deadlock",
    family="process",
    title="It is deadlocked",
    meaning="Every thread waits for another one, so nothing runs and nothing will. Locks held across a fork are the usual reason.",
    sure="No progress, an idle CPU, and stacks that all stand in a lock or a queue.",
    restart=RestartAdvice(RestartKind.ONCE_IF_KILLED, "deadlocked"),
    recipes=(
        *STACKS,
        torch(
            "Start workers afresh instead of forking",
            'DataLoader(dataset, num_workers=2,\n           multiprocessing_context="spawn")',
        ),
        python("Keep OpenCV's threads out of workers", "cv2.setNumThreads(0)"),
    ),
    exceptions=(
        rule(
            0.52,
            says(
                r"DataLoader timed out after \d+ seconds",
                ("torch 2.13.0", "RuntimeError: DataLoader timed out after 1 seconds"),
            ),
        ),
    ),
)
