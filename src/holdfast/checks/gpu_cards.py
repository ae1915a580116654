"""Each GPU: does it slow itself down, are there errors in its memory, who holds that, how is it connected, how hot is it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.checks.contract import Here, Line, bad, ok, warn
from holdfast.checks.samples import scope_of
from holdfast.probes.gpu import Session, text
from holdfast.probes.kernel_files import pid_namespace, read, under
from holdfast.probes.tree import belongs
from holdfast.units import amount

# Bits of nvmlDeviceGetCurrentClocksThrottleReasons. A power cap (0x4) is what every busy card runs at.
HARDWARE = {0x40: "it is too hot", 0x80: "its power supply asks it to (power brake)", 0x8: "the hardware asks it to"}
SOFTWARE_HEAT = 0x20
COOL = "see that its fans turn and air gets in: nvidia-smi -q -d TEMPERATURE,PERFORMANCE"
POWER = "look at its power cables and the power supply: nvidia-smi -q -d POWER,PERFORMANCE"
RESET = "sudo nvidia-smi --gpu-reset -i {index} (nothing may use it), or reboot"
TAKEN_RATIO, FULL_RATIO = 0.1, 0.95
NEAR_LIMIT_CELSIUS = 5
AT_WORK_PERCENT = 20  # an idle card lowers the generation of its link, and raises it again for work


class Card:
    """One card; what it does not answer is None."""

    def __init__(self, index: int, session: Session) -> None:
        self.index = index
        self.nvml = session.nvml
        self.handle = session.handles[index]

    def ask(self, question: str, *more: Any) -> Any:
        function: Callable[..., Any] | None = getattr(self.nvml, question, None)
        if function is None:  # an older nvidia-ml-py
            return None
        try:
            return function(self.handle, *more)
        except self.nvml.NVMLError:
            return None

    @property
    def name(self) -> str:
        return f"GPU {self.index} ({text(self.ask('nvmlDeviceGetName') or 'no name')})"


def lines(here: Here, session: Session, seen: Sequence[int]) -> Iterator[Line]:
    for index in seen:
        card = Card(index, session)
        here.asked(f"GPU {index}")
        found = [*_throttled(card), *_memory_errors(card), *_taken(here, card), *_link(card), *_heat(card)]
        yield from found or [ok("gpu", _all_well(card))]


def _all_well(card: Card) -> str:
    memory, celsius = card.ask("nvmlDeviceGetMemoryInfo"), _celsius(card)
    free = "" if memory is None else f", {amount(memory.free, 'bytes')} free of {amount(memory.total, 'bytes')}"
    return f"{card.name}{free}{'' if celsius is None else f', {celsius} °C'}: nothing slows it down, no errors"


def _throttled(card: Card) -> Iterator[Line]:
    flags = card.ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
    reasons = [words for bit, words in HARDWARE.items() if flags & bit]
    if reasons:
        fix = COOL if flags & 0x40 else POWER
        yield bad("gpu-throttled", f"{card.name} slows itself down: {reasons[0]}", fix)
    elif flags & SOFTWARE_HEAT:
        yield warn("gpu-throttled", f"{card.name} runs slower, since it is warm", COOL)


def _memory_errors(card: Card) -> Iterator[Line]:
    """Cards since Ampere replace bad rows by themselves, at a reset; older ones give up pages, at a reset, too."""
    reset = RESET.format(index=card.index)
    remapped = card.ask("nvmlDeviceGetRemappedRows")
    pending, failed = (bool(remapped[2]), bool(remapped[3])) if remapped is not None else (False, False)
    if failed:
        text = f"{card.name} has bad memory, and no spare row to replace it"
        yield bad("gpu-memory-errors", text, "do not train on it; have the card replaced")
        return
    if pending or card.ask("nvmlDeviceGetRetiredPagesPendingStatus") == 1:
        yield bad("gpu-memory-errors", f"{card.name} has bad memory that is replaced at its next reset", reset)
        return
    errors = card.ask(
        "nvmlDeviceGetTotalEccErrors", card.nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, card.nvml.NVML_VOLATILE_ECC
    )
    if errors:
        text = f"{card.name} had {errors} memory errors that could not be corrected since its driver was loaded"
        replaced = remapped is not None
        yield warn("gpu-memory-errors", text, reset) if replaced else bad("gpu-memory-errors", text, reset)


def _taken(here: Here, card: Card) -> Iterator[Line]:
    """Beside a run only by whom it is known that they are not of the job."""
    memory = card.ask("nvmlDeviceGetMemoryInfo")
    if memory is None or not memory.total:
        return
    known = pid_namespace(here.root, here.pid) == "initial"  # in a container NVML names processes by the host's ids
    users = card.ask("nvmlDeviceGetComputeRunningProcesses") or []
    if here.job_runs:
        users = [user for user in users if known and not belongs(scope_of(here), user.pid)]
        used = sum(user.usedGpuMemory or 0 for user in users)
    else:
        used = memory.used
    if used < TAKEN_RATIO * memory.total:
        return
    whom = ", ".join(_whom(here, user.pid) for user in users[:3]) if known and users else ""
    said = f"{amount(used, 'bytes')} of {amount(memory.total, 'bytes')} of {card.name} are taken"
    said += f" by {whom}" if whom else "; nvidia-smi on the host names by whom"
    fix = "wait for them, end them, or choose another card: export CUDA_VISIBLE_DEVICES=N"
    full = used >= FULL_RATIO * memory.total
    yield bad("gpu-memory-taken", said, fix) if full else warn("gpu-memory-taken", said, fix)


def _whom(here: Here, pid: int) -> str:
    try:
        name = read(under(here.root, f"/proc/{pid}/comm")).decode("utf-8", "replace").strip()
    except OSError:
        name = "process"
    return f"{name} ({pid})"


def _link(card: Card) -> Iterator[Line]:
    width, widest = (card.ask(f"nvmlDeviceGet{which}PcieLinkWidth") for which in ("Curr", "Max"))
    fix = "seat the card again, in another slot if need be; look at its riser"
    if width and widest and width < widest:
        yield warn("gpu-link", f"{card.name} is connected by {width} of {widest} PCIe lanes: data reach it slowly", fix)
        return
    busy = card.ask("nvmlDeviceGetUtilizationRates")
    if busy is None or busy.gpu < AT_WORK_PERCENT:
        return
    now, most = (card.ask(f"nvmlDeviceGet{which}PcieLinkGeneration") for which in ("Curr", "Max"))
    if now and most and now < most:
        yield warn("gpu-link", f"{card.name} works over PCIe generation {now}, and {most} is possible", fix)


def _heat(card: Card) -> Iterator[Line]:
    celsius = _celsius(card)
    limit = card.ask("nvmlDeviceGetTemperatureThreshold", card.nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    if celsius is None or not limit or celsius < limit - NEAR_LIMIT_CELSIUS:
        return
    said = f"{card.name} is at {celsius} °C; at {limit} °C it slows itself down"
    yield bad("gpu-heat", said, COOL) if celsius >= limit else warn("gpu-heat", said, COOL)


def _celsius(card: Card) -> int | None:
    answer = card.ask("nvmlDeviceGetTemperature", card.nvml.NVML_TEMPERATURE_GPU)
    return None if answer is None else int(answer)
