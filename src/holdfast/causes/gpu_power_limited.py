from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, shell
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
            says(
                r"HW Power Brake Slowdown\s*:? *Active",
                ("nvidia-smi -q", "            HW Power Brake Slowdown : Active"),
                near("nvidia-smi -q", "            HW Power Brake Slowdown : Not Active"),
            ),
            says(
                r"(?:SW )?Power Cap\s*:? *Active",
                ("nvidia-smi -q", "        SW Power Cap                : Active"),
                near("nvidia-smi -q", "        SW Power Cap                : Not Active"),
            ),
        ),
    ),
)
