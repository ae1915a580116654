from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, shell
from holdfast.causes.shared.recipes import SMALLER_STEP

CAUSE = CauseRecord(
    id="swap-thrash",
    family="memory",
    title="The machine is swapping",
    meaning="The working set is larger than RAM, so pages go to disk and back. Steps take many times as long as they should.",
    sure="Swap traffic and memory pressure are high while step time goes up and CPU time does not.",
    restart=RestartAdvice(RestartKind.SMALLER_STEPS, "killed for memory"),
    recipes=(*SMALLER_STEP, shell("See what swaps", "vmstat 1 5")),
)
