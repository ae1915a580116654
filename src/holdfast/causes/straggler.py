from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell

CAUSE = CauseRecord(
    id="straggler",
    family="ranks",
    title="One rank is slower than the others",
    meaning="All wait for it in every step. Its data, its GPU's clocks or its neighbours are the usual reasons.",
    sure="Step times per rank.",
    slows=True,
    recipes=(
        shell(
            "Compare the cards",
            "nvidia-smi --query-gpu=index,clocks.sm,temperature.gpu,power.draw --format=csv".replace(
                "power.draw --", "power.draw \\\n  --"
            ),
        ),
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
