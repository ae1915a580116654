from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell

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
        rule(0.56, r"\bslowest ranks by \w*time\b"),
        rule(0.6, "[Ss]traggler.{0,80}(?:detected|rank)", r"rank \d+ is (?:slower|a straggler)"),
    ),
)
