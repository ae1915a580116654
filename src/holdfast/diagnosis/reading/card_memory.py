"""Who held a card's memory, by the figures that messages give."""

from __future__ import annotations

import re

from holdfast.diagnosis.tracebacks import Raised
from holdfast.vocabulary import Evidence, Finding

# cuDNN could not be set up: XLA adds how much of the card was free at that moment.
CARD = re.compile(r"Memory usage: (?P<free>\d+) bytes free, (?P<total>\d+) bytes total")


def weigh_card(text: str) -> Finding | None:
    found = CARD.search(text)
    if found is None:
        return None
    free, total = float(found["free"]), float(found["total"])
    seen = (Evidence(f"{_gib(free)} of the card's {_gib(total)} were free", "log", None, free),)
    if free > 0.5 * total:
        return Finding("native-library-conflict", 0.68, seen)
    return Finding("gpu-memory-held-by-others" if free < 0.1 * total else "gpu-memory-exhausted", 0.6, seen)


# "Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total capacity; 1.2 GiB already allocated; 8.00 MiB free; 1.3 GiB …"
SIZE = r"([\d.]+) ?(bytes|[KMGT]i?B|[KMGT])"
WANTED = re.compile(r"[Tt]ried to allocate " + SIZE + r"|trying to allocate " + SIZE)
TOTAL = re.compile(SIZE + r" total capacity|total capacity of " + SIZE)
FREE = re.compile(SIZE + r" free\b|of which " + SIZE + r" is free")
MINE = re.compile(SIZE + r" reserved in total|this process has " + SIZE + r" memory in use")
CACHED = re.compile(SIZE + r" cached")  # until PyTorch 1.3: what is kept beside what is allocated
HELD = re.compile(SIZE + r" already allocated|memory " + SIZE + r" is allocated by PyTorch")
IDLE = re.compile(SIZE + r" is reserved by PyTorch but unallocated")
OTHER = re.compile(r"Process \d+ has " + SIZE + r" memory in use")
UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
MOSTLY = 0.3  # of the card
CONTEXT = 0.6 * (1 << 30)  # what CUDA itself and a desktop take, and no other job


def weigh_gpu(raised: Raised) -> Finding | None:
    """PyTorch says who holds what: the arithmetic tells a card that is too small from one that is taken or in pieces."""
    text = raised.message
    wanted, total, free = size_in(WANTED, text), size_in(TOTAL, text), size_in(FREE, text)
    if wanted is None or total is None or free is None:
        return None
    mine, held, cached = size_in(MINE, text), size_in(HELD, text), size_in(CACHED, text)
    if mine is None and held is not None and cached is not None:
        mine = held + cached
    idle = size_in(IDLE, text) or ((mine - held) if mine is not None and held is not None else 0.0)
    named = [_bytes(*found) for found in OTHER.findall(text)]
    if mine is None and held is not None:
        mine = _under_another_number(named, held + idle, total - free)
    others = sum(named) or (max(0.0, total - free - mine - CONTEXT) if mine is not None else 0.0)
    sums = Evidence(
        f"asked for {_gib(wanted)}; of {_gib(total)} this process held {_gib(mine or held or 0)}, "
        f"others {_gib(max(0.0, others))}, {_gib(free)} were free",
        "stderr",
        None,
        wanted,
    )
    known = {"wanted": _gib(wanted), "total": _gib(total)}
    if others > MOSTLY * total and wanted <= others and others > (mine or 0) * 0.5:
        headline = f"Other processes hold {_gib(others)} of the GPU's {_gib(total)}"
        return Finding("gpu-memory-held-by-others", 0.85, (sums,), known, headline=headline)
    if idle > max(wanted, 0.15 * total):
        headline = f"GPU memory is in pieces: {_gib(idle)} unused, but not {_gib(wanted)} in one"
        return Finding("gpu-memory-fragmented", 0.82, (sums,), known, headline=headline)
    headline = f"The GPU ran out of memory: {_gib(wanted)} more of {_gib(total)}"
    return Finding("gpu-memory-exhausted", 0.93, (sums,), known, headline=headline)


def _under_another_number(named: list[float], at_least: float, in_use: float) -> float | None:
    """In a container the driver knows this process by the host's number, so PyTorch takes it for another one: that which
    holds what PyTorch holds here and little more, or without which the card would hold more than it has. Taken out."""
    mine = min((one for one in named if one >= 0.98 * at_least), default=None)
    if mine is None or (mine > at_least + 2 * CONTEXT and sum(named) + at_least <= 1.02 * in_use):
        return None
    named.remove(mine)
    return mine


def size_in(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    if found is None:
        return None
    parts = [part for part in found.groups() if part is not None]
    return _bytes(parts[0], parts[1])


def _bytes(number: str, unit: str) -> float:
    try:
        return float(number) * UNITS[unit[0].lower()]
    except ValueError:
        return 0.0


def _gib(value: float) -> str:
    return f"{value / (1 << 30):.3g} GiB" if value >= 1 << 30 else f"{value / (1 << 20):.3g} MiB"


HAD = re.compile(r"Total memory: ?(?P<total>[\d.]+)GiB\s+Free memory: ?(?P<free>[\d.]+)(?P<unit>[MG])iB")
HAD_LATER = re.compile(r"Created (?:TensorFlow )?device .{0,80}GPU:\d+ with (?P<free>\d+) MB memory")

# What TensorFlow's allocator was given of the card when it started; it takes nearly all that is free.
POOL = re.compile(r"^Limit: {1,40}(?P<limit>\d{1,15})\s+InUse: ", re.MULTILINE)
SMALL_POOL = 512 << 20

REFUSED = re.compile(r"failed to alloc(?:ate)? ([\d.]+[KMG]i?B?)\b.{0,40} from device: CUDA_ERROR_OUT_OF_MEMORY")
STEP = re.compile(r"OOM when allocating|ran out of memory|ResourceExhausted|RESOURCE_EXHAUSTED|\bEpoch \d|\bloss\b")


def was_taken_before(text: str) -> str:
    """What was free when the framework looked at the card first; empty where that was most of it."""
    for found in HAD.finditer(text):
        free = float(found["free"]) / (1 if found["unit"] == "G" else 1024)
        if free < 0.3 * float(found["total"]):
            return f"at the start {found['free']} {found['unit']}iB of {found['total']} GiB were free"
    for found in HAD_LATER.finditer(text):
        if int(found["free"]) < 1024:
            return f"at the start only {found['free']} MB of the card could be had"
    for found in POOL.finditer(text):
        if int(found["limit"]) < SMALL_POOL:
            return f"TensorFlow could have only {int(found['limit']) >> 20} MiB of the card"
    return ""


def was_refused_its_share(text: str) -> str:
    """The driver refused what TensorFlow takes at its start, and no tensor of the script's was refused."""
    found = REFUSED.search(text)
    return f"the driver could not give the {found[1]} it had said were free" if found and not STEP.search(text) else ""
