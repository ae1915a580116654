"""What top, ps and free print of a machine that is slow: who waits for a device, who looks for memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.diagnosis.plain_text import Line
from holdfast.vocabulary import Evidence, Finding

# A row of ps: the process's number, its state, and what it waits in or runs.
UNINTERRUPTIBLE = re.compile(r"^\s{0,8}(?:[\w+-]{1,32} +)?\d{1,8}\s(?:[\d.:?/\w ]{0,80}\s)?D[sSlLN<+]{0,4}\s+\S")
# A row of top: share of the processors, share of memory, time, and the kernel's thread that frees pages.
PAGING = re.compile(r"\b[RSD]\s+(?P<cpu>\d{1,3}(?:[.,]\d)?)\s+\d+(?:[.,]\d)?\s+[\d:.]+\s+\[?kswapd\d")
# free, without and with units; top's own head
SWAP = re.compile(
    r"^\s{0,4}Swap:\s+(?P<total>[\d.]+)(?P<unit>[KMGT]?)i?B?\s+(?P<used>[\d.]+)(?P<used_unit>[KMGT]?)i?B?\b"
)
BUSY = 30.0  # percent of a core: on a machine with room it is idle
FEW = 3
UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
FULL = 0.9


def of_the_processes(lines: Sequence[Line]) -> list[Finding]:
    stuck = [line for line in lines if " D" in line.text and UNINTERRUPTIBLE.match(line.text)]
    if len(stuck) >= FEW:
        told = f"line {stuck[0].number}: {len(stuck)} processes wait for a device: {stuck[0].text.strip()[:120]}"
        return [Finding("io-stall", 0.62, (Evidence(told, "log", stuck[0].at),))]
    for line in lines:
        if "kswapd" in line.text and (busy := PAGING.search(line.text)) and _number(busy["cpu"]) >= BUSY:
            told = f"line {line.number}: the kernel spends {busy['cpu']} % of a core on freeing memory"
            return [Finding("swap-thrash", 0.66, (Evidence(told, "log", line.at),))]
        if "Swap:" in line.text and (swap := SWAP.match(line.text)):
            total, used = _size(swap["total"], swap["unit"]), _size(swap["used"], swap["used_unit"])
            if total > 0 and used >= FULL * total:
                told = f"line {line.number}: nearly all swap is used: {line.text.strip()[:120]}"
                return [Finding("swap-thrash", 0.56, (Evidence(told, "log", line.at),))]
    return []


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _size(number: str, unit: str) -> float:
    try:
        return float(number) * 1024.0 ** UNITS[unit]
    except ValueError:
        return 0.0
