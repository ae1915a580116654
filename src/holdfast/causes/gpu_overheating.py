from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell
from holdfast.causes.shared.recipes import COOLER

CAUSE = CauseRecord(
    id="gpu-overheating",
    family="gpu",
    title="The GPU is close to its temperature limit",
    meaning="It lowers its clocks to stay below it. Steps take longer until it cools down.",
    sure="The driver's throttle reason, and the temperature.",
    slows=True,
    recipes=(*COOLER, shell("Lower the power limit", "sudo nvidia-smi -pl 300")),
    lines=(
        rule(
            0.85,
            r"(?:HW|SW) Thermal Slowdown\s*:? *Active",
            "GPU.{0,60}(?:overheat|temperature.{0,40}(?:exceed|above|over the|slowdown|shutdown))",
            "thermal (?:throttl|slowdown|violation).{0,30}GPU",
        ),
    ),
)
