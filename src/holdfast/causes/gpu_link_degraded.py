from __future__ import annotations

from holdfast.causes.form import CauseRecord, shell

CAUSE = CauseRecord(
    id="gpu-link-degraded",
    family="gpu",
    title="The GPU's connection is slower than it can be",
    meaning="The card works with fewer PCIe lanes, or over an older generation, than card and slot can do together. Data and gradients reach it slowly; a card that is not seated well or a riser does that.",
    sure="The driver's own readings of the link while the card was at work.",
    slows=True,
    recipes=(
        shell("Look at the link while it trains", "nvidia-smi -q | grep -A12 'GPU Link Info'"),
        shell("Look for errors of the link", "nvidia-smi -q | grep -i replay"),
        shell("See what slot and card agreed on", "sudo lspci -vv -d 10de: | grep -i lnksta:"),
    ),
)
