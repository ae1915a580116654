"""NVML without a driver."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from .machine import GIB, SCRIPT


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        self.value = value

    def __str__(self) -> str:
        return {3: "Not Supported", 9: "Driver Not Loaded", 10: "Timeout", 15: "GPU is lost"}.get(
            self.value, "something else"
        )


class NVMLError_NotSupported(NVMLError):
    pass


class FakeNvml(ModuleType):
    """As much of pynvml as Holdfast asks for."""

    NVMLError = NVMLError
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_RESET_REQUIRED = 16
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_CLOCK_SM = 1
    nvmlEventTypeXidCriticalError = 8

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.processes = [SimpleNamespace(pid=SCRIPT, usedGpuMemory=3 * GIB), SimpleNamespace(pid=7, usedGpuMemory=GIB)]
        self.xids: list[SimpleNamespace] = []
        self.fails: dict[str, NVMLError] = {}
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name != "nvmlEventTypeXidCriticalError":
            answer = object.__getattribute__(self, "_" + name)

            def ask(*arguments: Any) -> Any:
                self.asked.append(name)
                if name in self.fails:
                    raise self.fails[name]
                return answer(*arguments) if callable(answer) else answer

            return ask
        return object.__getattribute__(self, name)

    _nvmlInit = None
    _nvmlShutdown = None
    _nvmlSystemGetDriverVersion = b"580.65"
    _nvmlDeviceGetCount = 1
    _nvmlDeviceGetName = "NVIDIA H200"
    _nvmlDeviceGetMemoryInfo = SimpleNamespace(total=140 * GIB, used=10 * GIB, free=130 * GIB)
    _nvmlDeviceGetUtilizationRates = SimpleNamespace(gpu=87, memory=12)
    _nvmlDeviceGetTemperature = 66
    _nvmlDeviceGetTemperatureThreshold = 87
    _nvmlDeviceGetPowerUsage = 512_000
    _nvmlDeviceGetEnforcedPowerLimit = 700_000
    _nvmlDeviceGetCurrentClocksThrottleReasons = 4
    _nvmlDeviceGetTotalEccErrors = 0
    _nvmlDeviceGetClockInfo = 1980
    _nvmlEventSetCreate = "set"
    _nvmlDeviceRegisterEvents = None
    _nvmlDeviceGetIndex = 0
    _nvmlDeviceGetUUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
    _nvmlSystemGetCudaDriverVersion_v2 = 12080
    _nvmlDeviceGetRemappedRows = (0, 0, 0, 0)
    _nvmlDeviceGetRetiredPagesPendingStatus = 0
    _nvmlDeviceGetCurrPcieLinkWidth = 16
    _nvmlDeviceGetMaxPcieLinkWidth = 16
    _nvmlDeviceGetCurrPcieLinkGeneration = 5
    _nvmlDeviceGetMaxPcieLinkGeneration = 5

    def _nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"handle{index}"

    def _nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return self.processes

    def _nvmlEventSetWait(self, events: str, timeout: int) -> SimpleNamespace:
        assert timeout == 0
        if not self.xids:
            raise NVMLError(10)
        return self.xids.pop(0)
