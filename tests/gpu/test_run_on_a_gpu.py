"""A real run on a real NVIDIA GPU: what is recorded, what is said, what is blamed."""

from __future__ import annotations

import re
import time

import psutil
import pytest

from holdfast.journal import Journal
from tests.workplace import Workplace, wait_for

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

TRAIN = """
    import sys, time, torch
    net = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)).cuda()
    best = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(1024, 4096, device="cuda"), torch.randint(0, 10, (1024,), device="cuda")
    until = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < until:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        best.zero_grad(); loss.backward(); best.step()
    torch.cuda.synchronize()
    print("done")
"""
OUT_OF_MEMORY = """
    import torch
    torch.cuda.set_per_process_memory_fraction(0.02)
    kept = [torch.zeros(1 << 28, device="cuda") for _ in range(100)]
"""
FILLS = """
    import time, torch
    total = torch.cuda.get_device_properties(0).total_memory
    kept = [torch.empty(int(total * 0.78), dtype=torch.uint8, device="cuda")]
    for _ in range(60):
        kept.append(torch.empty(int(total * 0.002), dtype=torch.uint8, device="cuda"))
        time.sleep(0.25)
"""
TAKES_ALL_AT_ONCE = """
    import time, torch
    time.sleep(4)
    kept = torch.empty(int(torch.cuda.get_device_properties(0).total_memory * 0.93), dtype=torch.uint8, device="cuda")
    time.sleep(12)
"""


def test_a_training_is_recorded_with_what_its_gpu_did(workplace: Workplace) -> None:
    done = workplace.run([*workplace.script(TRAIN), "12"], timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    journal = Journal(run / "journal")
    assert journal.events("gpu.found")[0].data["name"]
    highest: dict[str, float] = {}
    for sample in journal.samples():
        if sample.name.startswith("gpu0.") and sample.value is not None:
            highest[sample.name] = max(highest.get(sample.name, 0), sample.value)
    print(highest)
    assert highest["gpu0.memory_used_bytes"] > 300 << 20
    assert highest["gpu0.job_memory_bytes"] > 100 << 20
    assert highest["gpu0.utilisation_percent"] > 10
    for signal in ("temperature_celsius", "power_watts", "sm_clock_mhz", "temperature_limit_celsius"):
        assert highest[f"gpu0.{signal}"] > 0
    assert [event.data["name"] for event in journal.events("framework")] == ["torch"]


def test_running_out_of_gpu_memory_is_named(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(OUT_OF_MEMORY), timeout=120)
    assert done.returncode == 1
    answer = workplace.why()
    assert answer["cause"]["id"] == "gpu-memory-exhausted"
    assert any("train.py" in item["text"] for item in answer["cause"]["evidence"])


def test_gpu_memory_that_fills_is_announced(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(FILLS), timeout=120)
    said = done.stderr.decode()
    print(said)
    assert done.returncode == 0
    assert re.search(r"holdfast: GPU memory \(0\): .* in use, growing .*: full in about \d+", said), said


def test_a_framework_that_takes_the_whole_card_at_once_is_healthy(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(TAKES_ALL_AT_ONCE), timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def test_holdfast_stays_under_60_mib_with_nvml_loaded(workplace: Workplace) -> None:
    process = workplace.start([*workplace.script(TRAIN), "20"])
    script = workplace.script_of(process.pid)
    wait_for(lambda: script.cpu_times().user > 2, 60)
    time.sleep(6)  # by then what starting up took and freed has gone back
    ours = [psutil.Process(process.pid), workplace.watcher_of(process.pid)]
    sizes = [item.memory_info().rss / 2**20 for item in ours]
    shares = [item.memory_full_info().pss / 2**20 for item in ours]
    print("RSS", sizes, "PSS", shares)
    assert sum(sizes) < 60
    process.communicate(timeout=60)
