from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, shell
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
            says(
                r"(?:HW|SW) Thermal Slowdown\s*:? *Active",
                ("nvidia-smi -q", "            HW Thermal Slowdown     : Active"),
                near("nvidia-smi -q", "            HW Thermal Slowdown     : Not Active"),
            ),
            says(
                "GPU over temperature range",
                (
                    "amdgpu of Linux 6.5",
                    "amdgpu 0000:03:00.0: amdgpu: ERROR: GPU over temperature range(SW CTF) detected!",
                ),
            ),
            says(
                r"thermal violations totaling [\d.]+ seconds",
                ("DCGM 3.1", "There were thermal violations totaling 13.3 seconds for GPU 0"),
            ),
        ),
    ),
)
