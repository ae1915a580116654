from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell
from holdfast.causes.shared.recipes import COOLER

CAUSE = CauseRecord(
    id="gpu-power-limited",
    family="gpu",
    title="The GPU is held down by its power limit",
    meaning="It lowers its clocks because it may draw no more. Training goes on, more slowly.",
    sure="The driver's throttle reason, and power at its limit.",
    slows=True,
    recipes=(*COOLER, shell("Raise the limit, if the supply allows", "sudo nvidia-smi -pl 350")),
    lines=(
        rule(
            0.8,
            r"HW Power Brake Slowdown\s*:? *Active",
            r"(?:SW )?Power Cap\s*:? *Active",
            "power limit.{0,40}(?:throttl|reached)",
        ),
    ),
)
