from __future__ import annotations

from holdfast.causes.form import CauseRecord, python, rule, says, shell

CAUSE = CauseRecord(
    id="cpu-overheating",
    family="gpu",
    title="The CPU is close to its temperature limit",
    meaning="It lowers its clocks to stay below it. Preparing the data takes longer.",
    sure="The sensor at its limit, or the kernel says so.",
    slows=True,
    recipes=(
        shell("Use fewer threads", "OMP_NUM_THREADS=4 python train.py"),
        python("Fewer at work", "os.sched_setaffinity(0, range(os.cpu_count() // 2))"),
    ),
    lines=(
        rule(
            0.85,
            says(
                "temperature above threshold, cpu clock (?:is )?throttled",
                (
                    "Linux 4.18 kernel log",
                    "[26670.911219] CPU1: Core temperature above threshold, cpu clock throttled (total events = 1)",
                ),
            ),
            r"Processor \d+ heated above trip temperature",
            r"CPU \d+ THERMAL EVENT",
            r"thermal thermal_zone\d+: critical temperature reached",
            "System Overheating",
            r"CPU\d*:? .{0,30}(?:overheat|thermal throttl)",
        ),
    ),
)
