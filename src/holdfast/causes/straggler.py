from __future__ import annotations

from holdfast.causes.form import CauseRecord, Recipe, rule, says

CAUSE = CauseRecord(
    id="straggler",
    family="ranks",
    title="One rank is slower than the others",
    meaning="All wait for it in every step. Its data, its GPU's clocks or its neighbours are the usual reasons.",
    sure="Step times per rank.",
    slows=True,
    recipes=(
        Recipe(
            "See where its loader stands, while it runs",
            "holdfast stacks   # rank $rank and its workers",
            language="shell",
            when="data",
        ),
        Recipe(
            "See what else its machine's processors do",
            "ps -eo pid,psr,pcpu,args --sort=-pcpu | head   # where rank $rank runs",
            language="shell",
            when="computes",
        ),
        Recipe(
            "See where it stands, while it runs",
            "holdfast stacks   # rank $rank, beside the others",
            language="shell",
            when="waits",
        ),
        Recipe(
            "Compare the cards",
            "nvidia-smi \\\n  --query-gpu=index,clocks.sm,temperature.gpu,power.draw \\\n  --format=csv",
            language="shell",
            when="gpu",
        ),
        Recipe("Compare where the ranks stand, while they run", "holdfast stacks", language="shell", without="rank"),
    ),
    lines=(
        rule(
            0.56,
            says(
                r"\bslowest ranks by \w*time\b",
                ("a training tool in public", "  Top 5 slowest ranks by data_time (step_time_med=1.84s):"),
            ),
        ),
        rule(
            0.6,
            says(
                "[Ss]traggler.{0,80}(?:detected|rank)",
                ("a training tool in public", "WARNING:train:Straggler detected: rank 3 took 4.91s vs mean 1.84s"),
            ),
        ),
    ),
)
