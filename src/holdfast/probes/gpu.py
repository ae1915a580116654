"""NVIDIA GPUs through NVML: memory, load, heat, power, errors, and whether they are still there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import missing, pid_namespace, read, under
from holdfast.probes.tree import belongs
from holdfast.vocabulary import Event, Sample

XIDS_A_READ = 16
SLOW_EVERY_S = 1.0  # per GPU: the first of these queries in a second takes up to 4 ms each on an H200
ALMOST = 0.95  # of it: a tick that comes slightly early still reads them
RARE_EVERY_S = 5.0  # what changes in minutes: how the card is connected, rows of its memory
A_CHANGE_BYTES = 256 << 20  # of another process's memory: less is not told again
OTHERS_TOLD = 4
GPUS_AT_FULL_RATE = 2  # with more, each is read more rarely


@dataclass(slots=True)
class Card:
    index: int
    handle: Any
    lost: bool = False
    slow_due: float = float("-inf")
    rare_due: float = float("-inf")
    others: tuple[tuple[int, int], ...] = ()  # processes that are not the job's, as they were told last
    unsupported: set[str] = field(default_factory=set)


class Lost(Exception):
    """The GPU does not respond any more."""


class NoSession(Missing):
    """A driver is here, but NVML or a GPU is not to be had. `code` is NVML's own, where it gave one."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason, tell=code is not None)
        self.code = code


class Session(NamedTuple):
    nvml: Any  # the module
    driver: str
    handles: list[Any]


def open_session() -> Session:
    """A wedged driver can block this for ever. Whoever opens it calls nvmlShutdown."""
    try:
        import pynvml as nvml  # noqa: PLC0415 -- 4 MiB, and nvmlInit 15 more, of which 10 come back
    except ImportError:
        raise NoSession("an NVIDIA driver is here, but nvidia-ml-py is not installed") from None
    try:
        nvml.nvmlInit()
        driver = text(nvml.nvmlSystemGetDriverVersion())
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        reason = f"an NVIDIA driver is here, but NVML does not answer: {error}"
        raise NoSession(reason, error.value) from None
    if not handles:
        raise NoSession("an NVIDIA driver is here, but no GPU")
    return Session(nvml, driver, handles)


class Gpu:
    name = "gpu"
    every_s = 0.0

    def __init__(self, scope: Scope) -> None:
        expect_driver(scope.root)
        self._scope = scope
        self._nvml: Any = None
        self._cards: list[Card] = []
        self._xids: Any = None
        self._tells_xids: set[int] = set()
        self._slow_every_s = SLOW_EVERY_S

    def read(self, now: float) -> list[Reading]:
        readings: list[Reading] = []
        if self._nvml is None:
            readings += self._start(now)
        for card in self._cards:
            if card.lost:
                continue
            try:
                readings += self._read_card(card, now)
            except Lost:
                card.lost = True
                readings.append(Event("gpu.lost", now, {"index": card.index}))
                names = ("memory_used_bytes", "job_memory_bytes", *self._slow(card.handle), *self._rare(card.handle))
                readings += missing((f"gpu{card.index}.{what}" for what in names), now, "the GPU is lost")
        return readings + self._read_xids(now)

    def close(self) -> None:
        if self._nvml is not None:
            self._nvml.nvmlShutdown()

    def _start(self, now: float) -> list[Reading]:
        """Not in the constructor: a wedged driver can block nvmlInit for ever."""
        self._nvml, driver, handles = open_session()
        self._cards = [Card(index, handle) for index, handle in enumerate(handles)]
        self._slow_every_s = SLOW_EVERY_S * max(1.0, len(handles) / GPUS_AT_FULL_RATE)
        self._register_xids()
        return [self._found(card, driver, now) for card in self._cards]

    def _found(self, card: Card, driver: str, now: float) -> Event:
        nvml, handle = self._nvml, card.handle
        questions: dict[str, Callable[[], Any]] = {
            "name": lambda: text(nvml.nvmlDeviceGetName(handle)),
            "memory_total_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total,
            "link_most_lanes": lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
            "link_newest_generation": lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
        }
        about: dict[str, Any] = {"index": card.index, "driver": driver, "xids": card.index in self._tells_xids}
        for what, ask in questions.items():
            try:
                about[what] = ask()
            except nvml.NVMLError:
                about[what] = None  # the event still says that the GPU exists; the samples say what is wrong
        return Event("gpu.found", now, about)

    def _read_card(self, card: Card, now: float) -> list[Reading]:
        nvml, handle = self._nvml, card.handle
        readings: list[Reading] = []
        memory = self._ask(card, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        for what in ("used", "total"):
            readings += _sample(card, f"memory_{what}_bytes", getattr(memory, what, memory), now)
        if now < card.slow_due:
            return readings
        card.slow_due = now + self._slow_every_s * ALMOST
        readings += self._job_memory(card, now)
        questions = self._slow(handle)
        if now >= card.rare_due:
            card.rare_due = now + RARE_EVERY_S * ALMOST
            questions |= self._rare(handle)
        for what, (ask, scale) in questions.items():
            if what not in card.unsupported:
                readings += _sample(card, what, self._ask(card, ask), now, scale)
        return readings

    def _slow(self, handle: Any) -> dict[str, tuple[Callable[[], Any], float]]:
        nvml = self._nvml
        slowdown, uncorrected = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        return {
            "utilisation_percent": (lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu, 1),
            "temperature_celsius": (lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU), 1),
            "temperature_limit_celsius": (lambda: nvml.nvmlDeviceGetTemperatureThreshold(handle, slowdown), 1),
            "power_watts": (lambda: nvml.nvmlDeviceGetPowerUsage(handle), 0.001),
            "power_limit_watts": (lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle), 0.001),
            "throttle_flags": (lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle), 1),
            "ecc_uncorrected_count": (
                lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, uncorrected, nvml.NVML_VOLATILE_ECC),
                1,
            ),
            "sm_clock_mhz": (lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM), 1),
        }

    def _rare(self, handle: Any) -> dict[str, tuple[Callable[[], Any], float]]:
        nvml = self._nvml
        return {
            "link_lanes": (lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle), 1),
            "link_generation": (lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle), 1),
            "rows_to_remap_count": (lambda: int(nvml.nvmlDeviceGetRemappedRows(handle)[2]), 1),
            "rows_not_remapped_count": (lambda: int(nvml.nvmlDeviceGetRemappedRows(handle)[3]), 1),
        }

    def _ask(self, card: Card, question: Callable[[], Any]) -> Any:
        """The answer, or the error as the answer; Lost when the GPU is gone."""
        try:
            return question()
        except self._nvml.NVMLError as error:
            if error.value in (self._nvml.NVML_ERROR_GPU_IS_LOST, self._nvml.NVML_ERROR_RESET_REQUIRED):
                raise Lost from None
            return error

    def _job_memory(self, card: Card, now: float) -> list[Reading]:
        name = f"gpu{card.index}.job_memory_bytes"
        if pid_namespace(self._scope.root, self._scope.watcher_pid) != "initial":
            return [Sample(name, None, now, "in a container NVML names processes by the host's ids")]
        processes = self._ask(card, lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(card.handle))
        if isinstance(processes, Exception):
            return [Sample(name, None, now, str(processes))]
        ours = [process.usedGpuMemory for process in processes if belongs(self._scope, process.pid)]
        told = self._others(card, [one for one in processes if not belongs(self._scope, one.pid)], now)
        if any(used is None for used in ours):
            return [*told, Sample(name, None, now, "the driver does not tell memory by process")]
        return [*told, Sample(name, sum(ours), now)]

    def _others(self, card: Card, processes: list[Any], now: float) -> list[Reading]:
        """Who else is on the card, when that has changed by more than a few MiB."""
        found = tuple(sorted((one.pid, (one.usedGpuMemory or 0) // A_CHANGE_BYTES) for one in processes))
        if found == card.others:
            return []
        card.others = found
        told = [
            {"pid": one.pid, "name": self._name_of(one.pid), "bytes": one.usedGpuMemory}
            for one in sorted(processes, key=lambda one: -(one.usedGpuMemory or 0))[:OTHERS_TOLD]
        ]
        return [Event("gpu.others", now, {"index": card.index, "processes": told})]

    def _name_of(self, pid: int) -> str:
        try:
            return read(under(self._scope.root, f"/proc/{pid}/comm")).decode("utf-8", "replace").strip()
        except OSError:
            return "process"

    def _register_xids(self) -> None:
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
        except nvml.NVMLError:
            return
        for card in self._cards:
            try:
                nvml.nvmlDeviceRegisterEvents(card.handle, nvml.nvmlEventTypeXidCriticalError, events)
            except nvml.NVMLError:
                continue  # not supported by this GPU
            self._xids = events
            self._tells_xids.add(card.index)

    def _read_xids(self, now: float) -> list[Event]:
        found: list[Event] = []
        nvml = self._nvml
        while self._xids is not None and len(found) < XIDS_A_READ:
            try:
                data = nvml.nvmlEventSetWait(self._xids, 0)
            except nvml.NVMLError as error:
                if error.value == nvml.NVML_ERROR_GPU_IS_LOST:
                    self._xids = None
                break  # a timeout: nothing happened
            found.append(Event("gpu.xid", now, {"index": self._index(data.device), "xid": int(data.eventData)}))
        return found

    def _index(self, handle: Any) -> int | None:
        try:
            return int(self._nvml.nvmlDeviceGetIndex(handle))
        except self._nvml.NVMLError:
            return None


def _sample(card: Card, what: str, answer: Any, now: float, scale: float = 1) -> list[Sample]:
    """A query that this GPU does not support is reported once and not made again."""
    name = f"gpu{card.index}.{what}"
    if not isinstance(answer, Exception):
        return [Sample(name, answer * scale, now)]
    if what in card.unsupported:
        return []
    if type(answer).__name__ in ("NVMLError_NotSupported", "NVMLError_FunctionNotFound"):
        card.unsupported.add(what)
    return [Sample(name, None, now, str(answer))]


def expect_driver(root: Path) -> None:
    """Asks no driver: raises Missing where there is none of NVIDIA's."""
    if any((root / path).exists() for path in ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg")):
        return
    other = _other_maker(root)
    if other:
        raise Missing(f"{other} GPU found: Holdfast does not watch its memory or temperature yet", tell=True)
    raise Missing("no NVIDIA driver here")


def _other_maker(root: Path) -> str:
    for vendor in sorted((root / "sys/class/drm").glob("card*/device/vendor")):
        try:
            maker = read(str(vendor)).strip()
        except OSError:
            continue
        if maker == b"0x1002":
            return "AMD"
        # Intel's integrated graphics always has this address; a discrete card does not.
        if maker == b"0x8086" and vendor.parent.resolve().name != "0000:00:02.0":
            return "Intel"
    return "AMD" if (root / "dev/kfd").exists() else ""


def text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
