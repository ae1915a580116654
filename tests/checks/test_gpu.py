"""GPUs that are there and cannot be used, and cards with trouble, told by a stand-in driver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.checks import gpu
from holdfast.checks.contract import Here, Line
from holdfast.probes.kernel_files import INITIAL_PID_NAMESPACE
from tests.probes.fake_nvml import FakeNvml, NVMLError, NVMLError_NotSupported
from tests.probes.machine import GIB, FakeMachine


@pytest.fixture
def host(machine: FakeMachine, here: Here, nvml: FakeNvml) -> FakeMachine:
    """Outside containers, with a driver and one idle card."""
    machine.write("/dev/nvidiactl", "")
    machine.folder(f"/proc/{here.pid}/ns").joinpath("pid").symlink_to(INITIAL_PID_NAMESPACE)
    nvml._nvmlDeviceGetMemoryInfo = SimpleNamespace(total=140 * GIB, used=GIB // 2, free=139 * GIB)
    nvml._nvmlDeviceGetUtilizationRates = SimpleNamespace(gpu=0, memory=0)
    nvml.processes = []
    return machine


def told(lines: Iterable[Line]) -> list[tuple[str, str]]:
    found = list(lines)
    assert [line.id for line in found if (line.status == "ok") == bool(line.fix)] == []
    return [(line.id, line.status) for line in found]


def card_on_the_bus(machine: FakeMachine, driver: str = "", vendor: str = "0x10de", kind: str = "0x030200") -> None:
    address = "/sys/bus/pci/devices/0000:3b:00.0"
    machine.write(f"{address}/vendor", f"{vendor}\n")
    machine.write(f"{address}/class", f"{kind}\n")
    if driver:
        (machine.root / address.lstrip("/") / "driver").symlink_to(machine.folder(f"/sys/bus/pci/drivers/{driver}"))


# -- no driver


def test_a_machine_without_a_gpu_is_fine(here: Here, machine: FakeMachine) -> None:
    assert told(gpu.look(here)) == [("gpu", "ok")]
    card_on_the_bus(machine, vendor="0x8086")
    assert told(gpu.look(here)) == [("gpu", "ok")]


@pytest.mark.parametrize(
    ("driver", "kind", "expected"),
    [
        ("", "0x030200", ("gpu-driver", "bad")),
        ("nouveau", "0x030000", ("gpu-driver", "warn")),
        ("vfio-pci", "0x030200", ("gpu", "ok")),  # handed on to a virtual machine
        ("", "0x040300", ("gpu", "ok")),  # the sound of a card
    ],
)
def test_a_card_without_nvidias_driver(
    here: Here, machine: FakeMachine, driver: str, kind: str, expected: tuple[str, str]
) -> None:
    card_on_the_bus(machine, driver, kind=kind)
    assert told(gpu.look(here)) == [expected]


@pytest.mark.parametrize(("wanted", "status"), [(None, "warn"), ("void", "warn"), ("all", "bad")])
def test_a_container_without_the_runtime(here: Here, machine: FakeMachine, wanted: str | None, status: str) -> None:
    machine.write("/.dockerenv", "")
    machine.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX 550.54\n")
    environment = {} if wanted is None else {"NVIDIA_VISIBLE_DEVICES": wanted}
    (line,) = gpu.look(replace(here, environment=environment))
    assert (line.id, line.status) == ("gpu-container", status)
    assert "--gpus all" in line.fix


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (18, ("version mismatch", "reboot")),
        (12, ("libnvidia-ml.so.1", "libraries")),
        (9, ("not loaded", "modprobe")),
        (4, ("may not open", "/dev/nvidia")),
        (15, ("fallen off the bus", "reboot")),
        (999, ("unknown error", "container")),
        (17, ("NVML does not answer: something else", "nvidia-smi")),
    ],
)
def test_errors_of_nvml_in_words(
    host: FakeMachine, here: Here, nvml: FakeNvml, code: int, expected: tuple[str, str]
) -> None:
    nvml.fails["nvmlInit"] = NVMLError(code)
    (line,) = gpu.look(here)
    assert (line.id, line.status) == ("gpu-driver", "bad")
    assert expected[0] in line.text and expected[1] in line.fix


def test_a_library_that_is_missing_in_a_container_is_the_runtimes(
    host: FakeMachine, here: Here, nvml: FakeNvml
) -> None:
    nvml.fails["nvmlInit"] = NVMLError(12)
    (line,) = gpu.look(replace(here, environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}))
    assert "nvidia.com/gpu" in line.fix


# -- CUDA_VISIBLE_DEVICES


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, [("gpu", "ok")]),
        ("0", [("gpu", "ok")]),
        ("GPU-8932f937", [("gpu", "ok")]),
        ("MIG-5c89852c", [("gpu", "ok")]),
        ("", [("gpu-hidden", "warn")]),
        ("-1", [("gpu-hidden", "warn")]),
        ("1", [("gpu-hidden", "bad")]),
        ("GPU-0000", [("gpu-hidden", "bad")]),
        ("0,1", [("gpu-hidden", "bad"), ("gpu", "ok")]),
        ("0,0", [("gpu-hidden", "bad"), ("gpu", "ok")]),
    ],
)
def test_cards_that_are_hidden(host: FakeMachine, here: Here, named: str | None, expected: Any) -> None:
    environment = {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
    assert told(gpu.look(replace(here, environment=environment))) == expected


def test_a_card_that_is_not_used_may_be_ill(host: FakeMachine, here: Here, nvml: FakeNvml) -> None:
    nvml._nvmlDeviceGetCount = 2
    nvml._nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x40 if handle == "handle1" else 0
    assert told(gpu.look(here)) == [("gpu", "ok"), ("gpu-throttled", "bad")]
    assert told(gpu.look(replace(here, environment={"CUDA_VISIBLE_DEVICES": "0"}))) == [("gpu", "ok")]


# -- each card


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({}, ("gpu", "ok")),
        ({"CurrentClocksThrottleReasons": 0x4}, ("gpu", "ok")),  # a power cap: every busy card
        ({"CurrentClocksThrottleReasons": 0x40 | 0x8}, ("gpu-throttled", "bad")),
        ({"CurrentClocksThrottleReasons": 0x80}, ("gpu-throttled", "bad")),
        ({"CurrentClocksThrottleReasons": 0x8}, ("gpu-throttled", "bad")),
        ({"CurrentClocksThrottleReasons": 0x20}, ("gpu-throttled", "warn")),
        ({"TotalEccErrors": 3}, ("gpu-memory-errors", "warn")),  # replaced meanwhile
        ({"TotalEccErrors": 3, "RemappedRows": None}, ("gpu-memory-errors", "bad")),
        ({"RemappedRows": (0, 1, 1, 0)}, ("gpu-memory-errors", "bad")),
        ({"RemappedRows": (0, 8, 0, 1)}, ("gpu-memory-errors", "bad")),
        ({"RemappedRows": (0, 1, 0, 0)}, ("gpu", "ok")),
        ({"RetiredPagesPendingStatus": 1}, ("gpu-memory-errors", "bad")),
        ({"CurrPcieLinkWidth": 4}, ("gpu-link", "warn")),
        ({"CurrPcieLinkGeneration": 1}, ("gpu", "ok")),  # idle
        (
            {"CurrPcieLinkGeneration": 1, "UtilizationRates": SimpleNamespace(gpu=90, memory=9)},
            ("gpu-link", "warn"),
        ),
        ({"Temperature": 84}, ("gpu-heat", "warn")),
        ({"Temperature": 88}, ("gpu-heat", "bad")),
    ],
)
def test_a_card(
    host: FakeMachine, here: Here, nvml: FakeNvml, answers: dict[str, Any], expected: tuple[str, str]
) -> None:
    for question, answer in answers.items():
        if answer is None:
            nvml.fails[f"nvmlDeviceGet{question}"] = NVMLError_NotSupported(3)
        else:
            setattr(nvml, f"_nvmlDeviceGet{question}", answer)
    assert told(gpu.look(here)) == [expected]
    assert nvml.asked[-1] == "nvmlShutdown"


def takes(nvml: FakeNvml, used_gib: int, pid: int) -> None:
    nvml._nvmlDeviceGetMemoryInfo = SimpleNamespace(total=140 * GIB, used=used_gib * GIB, free=(140 - used_gib) * GIB)
    nvml.processes = [SimpleNamespace(pid=pid, usedGpuMemory=used_gib * GIB)]


@pytest.mark.parametrize(("used_gib", "status"), [(20, "warn"), (138, "bad")])
def test_memory_that_others_hold(host: FakeMachine, here: Here, nvml: FakeNvml, used_gib: int, status: str) -> None:
    takes(nvml, used_gib, 4711)
    host.write("/proc/4711/comm", "jupyter\n")
    (line,) = gpu.look(here)
    assert (line.id, line.status) == ("gpu-memory-taken", status)
    assert "by jupyter (4711)" in line.text


def test_in_a_container_nobody_is_named(host: FakeMachine, here: Here, nvml: FakeNvml) -> None:
    link = host.root / f"proc/{here.pid}/ns/pid"
    link.unlink()
    link.symlink_to("pid:[4026532999]")
    takes(nvml, 138, 1)
    host.write("/proc/1/comm", "tini\n")
    (line,) = gpu.look(here)
    assert line.status == "bad" and "tini" not in line.text
    assert told(gpu.look(replace(here, job_runs=True))) == [("gpu", "ok")], "it may be the job's own"


def test_beside_a_run_the_jobs_own_memory_is_not_held_by_others(host: FakeMachine, here: Here, nvml: FakeNvml) -> None:
    host.process(here.pid, 1)
    host.process(600, here.pid)
    takes(nvml, 138, 600)
    assert told(gpu.look(replace(here, job_runs=True))) == [("gpu", "ok")]
    host.process(600, 1)
    assert told(gpu.look(replace(here, job_runs=True))) == [("gpu-memory-taken", "bad")]


def test_a_driver_that_hangs_is_named(host: FakeMachine, here: Here, nvml: FakeNvml) -> None:
    import threading

    from holdfast.checks import CHECKS
    from holdfast.checks.runner import look_at_all

    never = threading.Event()
    nvml._nvmlInit = never.wait
    (line,) = look_at_all(here, [check for check in CHECKS if check.id == "gpu-driver"], 0.3)
    never.set()
    assert line.text == "the NVIDIA driver did not answer within 0.3 s"
    assert line.status == "warn" and "reboot" in line.fix
