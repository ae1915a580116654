from __future__ import annotations

from holdfast.causes.form import CauseRecord, shell

CAUSE = CauseRecord(
    id="step-slowdown",
    family="process",
    title="Steps became several times slower",
    meaning="From one moment on every step takes several times as long, and nothing in the script says why. What changed on the machine at that moment is the reason to look for.",
    sure="Step times before and after, and what changed beside them.",
    slows=True,
    recipes=(shell("See who else works on the machine", "top -b -n1 -o %CPU | head -n 20"),),
)
