"""What top, ps, free and nvidia-smi print of a machine that is slow: who waits, who looks for memory, who is dead or hot."""

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
DEAD = re.compile(r"\sZ[sSlLN<+]{0,4}\s.{0,40}\[python[\w.]{0,6}\] <defun")
ALIVE = re.compile(r"\s[RSD][sSlLN<+]{0,4}\s.{0,40}\bpython")
HEAT = re.compile(r"^\s{0,20}GPU (?P<of>Current|Slowdown|Max Operating) Temp\s{1,40}: (?P<value>\d{1,3}) C\s*$")
NEARLY = 2  # degrees below its limit a card holds its clocks down
BUSY = 30.0  # percent of a core: on a machine with room it is idle
FEW = 3
UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
FULL = 0.9


def of_the_processes(lines: Sequence[Line]) -> list[Finding]:
    stuck = [line for line in lines if " D" in line.text and UNINTERRUPTIBLE.match(line.text)]
    if len(stuck) >= FEW:
        told = f"line {stuck[0].number}: {len(stuck)} processes wait for a device: {stuck[0].text.strip()[:120]}"
        return [Finding("io-stall", 0.62, (Evidence(told, "log", stuck[0].at),))]
    dead = [line for line in lines if "<defun" in line.text and DEAD.search(line.text)]
    if len(dead) > 1 and any("python" in line.text and ALIVE.search(line.text) for line in lines):
        told = f"line {dead[0].number}: {len(dead)} of its processes are dead: {dead[0].text.strip()[:120]}"
        return [Finding("worker-died", 0.56, (Evidence(told, "log", dead[0].at),))]
    return _of_paging(lines) or _of_heat(lines)


def _of_paging(lines: Sequence[Line]) -> list[Finding]:
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


def _of_heat(lines: Sequence[Line]) -> list[Finding]:
    """A card as hot as it may be; each card's own figures follow one another."""
    now: tuple[int, Line] | None = None
    for line in lines:
        found = HEAT.match(line.text) if " Temp " in line.text else None
        if found is None:
            continue
        value = int(found["value"])
        if found["of"] == "Current":
            now = (value, line)
        elif now is not None and now[0] >= value - NEARLY:
            told = f"line {now[1].number}: the card has {now[0]} C where {value} C is its limit"
            return [Finding("gpu-overheating", 0.6, (Evidence(told, "log", now[1].at),))]
    return []


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _size(number: str, unit: str) -> float:
    try:
        return float(number) * 1024.0 ** UNITS[unit]
    except ValueError:
        return 0.0
