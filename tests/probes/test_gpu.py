from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.probes import Missing, Scope
from holdfast.probes.gpu import Gpu
from holdfast.probes.kernel_files import INITIAL_PID_NAMESPACE

from .fake_nvml import FakeNvml, NVMLError, NVMLError_NotSupported
from .machine import GIB, SCRIPT, WATCHER, FakeMachine, events, reasons, samples


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


@pytest.fixture
def host(machine: FakeMachine) -> FakeMachine:
    machine.write("/dev/nvidiactl", "")
    machine.process(WATCHER, 1)
    machine.process(SCRIPT, WATCHER)
    machine.folder(f"/proc/{WATCHER}/ns").joinpath("pid").symlink_to(INITIAL_PID_NAMESPACE)
    return machine


def test_everything_about_a_gpu_is_told(host: FakeMachine, nvml: FakeNvml) -> None:
    found = Gpu(host.scope()).read(1.0)
    assert samples(found) == {
        "gpu0.memory_used_bytes": 10 * GIB,
        "gpu0.memory_total_bytes": 140 * GIB,
        "gpu0.job_memory_bytes": 3 * GIB,
        "gpu0.utilisation_percent": 87,
        "gpu0.temperature_celsius": 66,
        "gpu0.temperature_limit_celsius": 87,
        "gpu0.power_watts": pytest.approx(512),
        "gpu0.power_limit_watts": pytest.approx(700),
        "gpu0.throttle_flags": 4,
        "gpu0.ecc_uncorrected_count": 0,
        "gpu0.sm_clock_mhz": 1980,
        "gpu0.link_lanes": 16,
        "gpu0.link_generation": 5,
        "gpu0.rows_to_remap_count": 0,
        "gpu0.rows_not_remapped_count": 0,
    }
    (about,) = events(found, "gpu.found")
    expected = {"index": 0, "name": "NVIDIA H200", "driver": "580.65", "memory_total_bytes": 140 * GIB, "xids": True}
    assert about.data == expected | {"link_most_lanes": 16, "link_newest_generation": 5}


def test_a_card_that_sends_no_xids_says_so(host: FakeMachine, nvml: FakeNvml) -> None:
    nvml.fails["nvmlDeviceRegisterEvents"] = NVMLError_NotSupported(3)
    (about,) = events(Gpu(host.scope()).read(1.0), "gpu.found")
    assert about.data["xids"] is False


def test_who_else_is_on_the_card_is_told_by_name_once(host: FakeMachine, nvml: FakeNvml) -> None:
    host.write("/proc/7/comm", "jupyter\n")
    probe = Gpu(host.scope())
    (told,) = events(probe.read(1.0), "gpu.others")
    assert told.data == {"index": 0, "processes": [{"pid": 7, "name": "jupyter", "bytes": GIB}]}
    assert not events(probe.read(2.0), "gpu.others")
    nvml.processes.pop()
    (gone,) = events(probe.read(3.0), "gpu.others")
    assert gone.data["processes"] == []


def test_how_it_is_connected_is_read_every_five_seconds(host: FakeMachine, nvml: FakeNvml) -> None:
    probe = Gpu(host.scope())
    probe.read(1.0)
    assert "gpu0.link_lanes" not in samples(probe.read(3.0))
    assert "gpu0.link_lanes" in samples(probe.read(6.0))


def test_memory_is_read_every_tick_and_the_rest_once_a_second(host: FakeMachine, nvml: FakeNvml) -> None:
    probe = Gpu(host.scope())
    probe.read(1.0)
    assert set(samples(probe.read(1.1))) == {"gpu0.memory_used_bytes", "gpu0.memory_total_bytes"}
    assert "gpu0.power_watts" in samples(probe.read(2.0))


def test_the_constructor_does_not_touch_the_driver(host: FakeMachine, nvml: FakeNvml) -> None:
    Gpu(host.scope())
    assert nvml.asked == []


def test_in_a_container_nobody_guesses_whose_memory_it_is(host: FakeMachine, nvml: FakeNvml) -> None:
    link = host.root / f"proc/{WATCHER}/ns/pid"
    link.unlink()
    link.symlink_to("pid:[4026532999]")
    assert "host's ids" in reasons(Gpu(host.scope()).read(1.0))["gpu0.job_memory_bytes"]


def test_a_question_the_gpu_cannot_answer_is_asked_once(host: FakeMachine, nvml: FakeNvml) -> None:
    nvml.fails["nvmlDeviceGetTotalEccErrors"] = NVMLError_NotSupported(3)
    probe = Gpu(host.scope())
    assert reasons(probe.read(1.0))["gpu0.ecc_uncorrected_count"] == "Not Supported"
    assert "gpu0.ecc_uncorrected_count" not in samples(probe.read(3.0))
    assert nvml.asked.count("nvmlDeviceGetTotalEccErrors") == 1


def test_an_xid_becomes_an_event(host: FakeMachine, nvml: FakeNvml) -> None:
    probe = Gpu(host.scope())
    assert events(probe.read(1.0), "gpu.xid") == []
    nvml.xids = [SimpleNamespace(device="handle0", eventData=79)]
    (xid,) = events(probe.read(2.0), "gpu.xid")
    assert xid.data == {"index": 0, "xid": 79}


def test_a_gpu_that_falls_off_the_bus_is_lost_once(host: FakeMachine, nvml: FakeNvml) -> None:
    probe = Gpu(host.scope())
    probe.read(1.0)
    nvml.fails["nvmlDeviceGetMemoryInfo"] = NVMLError(15)
    found = probe.read(2.0)
    assert [event.data for event in events(found, "gpu.lost")] == [{"index": 0}]
    assert reasons(found)["gpu0.memory_used_bytes"] == "the GPU is lost"
    assert events(probe.read(3.0), "gpu.lost") == []


def test_a_driver_that_does_not_start_is_missing(host: FakeMachine, nvml: FakeNvml) -> None:
    nvml.fails["nvmlInit"] = NVMLError(9)
    with pytest.raises(Missing, match="NVML does not answer: Driver Not Loaded"):
        Gpu(host.scope()).read(1.0)


def test_without_a_driver_there_is_no_probe(machine: FakeMachine) -> None:
    with pytest.raises(Missing, match="no NVIDIA driver here"):
        Gpu(machine.scope())


def test_an_amd_gpu_is_named_as_not_watched(machine: FakeMachine) -> None:
    machine.write("/sys/class/drm/card0/device/vendor", "0x1002\n")
    with pytest.raises(Missing) as reason:
        Gpu(machine.scope())
    assert str(reason.value) == "AMD GPU found: Holdfast does not watch its memory or temperature yet"


def test_graphics_inside_an_intel_processor_are_no_gpu_to_train_on(machine: FakeMachine) -> None:
    machine.write("/sys/devices/pci0000:00/0000:00:02.0/vendor", "0x8086\n")
    machine.folder("/sys/class/drm/card0").joinpath("device").symlink_to(
        machine.root / "sys/devices/pci0000:00/0000:00:02.0"
    )
    with pytest.raises(Missing, match="no NVIDIA driver here"):
        Gpu(machine.scope())


def test_an_intel_card_is_named_as_not_watched(machine: FakeMachine) -> None:
    machine.write("/sys/class/drm/card1/device/vendor", "0x8086\n")
    with pytest.raises(Missing, match="Intel GPU found"):
        Gpu(machine.scope())


@pytest.mark.gpu
def test_a_real_gpu_has_memory_and_a_temperature() -> None:
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("needs an NVIDIA GPU")
    probe = Gpu(Scope(os.getpid(), os.getppid(), (Path("/"),)))
    found = probe.read(1.0)
    probe.close()
    assert 0 <= (samples(found)["gpu0.memory_used_bytes"] or 0) < (samples(found)["gpu0.memory_total_bytes"] or 0)
    assert 0 < (samples(found)["gpu0.temperature_celsius"] or 0) < 120
    assert events(found, "gpu.found")[0].data["driver"]
