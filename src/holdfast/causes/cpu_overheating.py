from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, python, rule, says, shell

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
            says(
                r"Processor \d+ heated above trip temperature",
                ("mcelog 1.29", "Processor 1 heated above trip temperature. Throttling enabled."),
                near("mcelog 1.29", "Processor 1 below trip temperature. Throttling disabled"),
            ),
            says(r"CPU \d+ THERMAL EVENT", ("mcelog 1.29", "CPU 1 THERMAL EVENT TSC 2857ef4e902 ")),
            says(
                r"thermal thermal_zone\d+: (?:[\w-]+: )?critical temperature reached",
                (
                    "Linux 3.2 kernel log",
                    "Jan  3 11:19:54 Mirkwood kernel: [   42.487785] thermal thermal_zone4: critical temperature reached (128 C), shutting down",
                ),
                ("Linux 6.1", "kernel: thermal thermal_zone0: acpitz: critical temperature reached, shutting down"),
            ),
        ),
    ),
)
