"""What is read of a real card against nvidia-smi; a job of one rank with NCCL; what a driver's line in the kernel's log is taken for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.journal import Journal
from holdfast.probes.contract import Scope
from holdfast.probes.gpu import Gpu
from holdfast.vocabulary import Event, Sample
from tests.workplace import Workplace

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(240)]

KERNEL_LOG = Path("/dev/kmsg")
ALLOWED = "HOLDFAST_TESTS_WRITE_KERNEL_LOG"
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
    if len(sys.argv) > 2:
        raise RuntimeError("CUDA error: unspecified launch failure")
"""
RANKS = """
    import os, sys, torch
    import torch.distributed as dist
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 4).cuda())
    best = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(200):
        x = torch.randn(32, 64, device="cuda")
        best.zero_grad(); model(x).square().mean().backward(); best.step()
        if step == 150 and len(sys.argv) > 1:
            raise ValueError("the file of sample 4711 is empty")
    print("weights", sum(p.double().sum().item() for p in model.parameters()))
    dist.destroy_process_group()
"""
ASKED = {
    "gpu0.memory_total_bytes": ("memory.total", 1 << 20, 0.01),
    "gpu0.temperature_celsius": ("temperature.gpu", 1, 0.1),
    "gpu0.power_limit_watts": ("enforced.power.limit", 1, 0.01),
    "gpu0.power_watts": ("power.draw.instant", 1, 0.25),
    "gpu0.sm_clock_mhz": ("clocks.sm", 1, 0.25),
    "gpu0.link_lanes": ("pcie.link.width.current", 1, 0.0),
}


def of_nvidia_smi(*questions: str) -> list[str]:
    command = ["nvidia-smi", f"--query-gpu={','.join(questions)}", "--format=csv,noheader,nounits"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return [value.strip() for value in said.splitlines()[0].split(",")]


def test_readings_are_those_of_nvidia_smi() -> None:
    scope = Scope(root=Path("/"), root_pid=os.getpid(), watcher_pid=os.getpid())
    probe = Gpu(scope)
    probe.read(time.monotonic())
    said = dict(zip(ASKED, of_nvidia_smi(*(question for question, _, _ in ASKED.values())), strict=True))
    readings = probe.read(time.monotonic() + 10)
    ours = {one.name: one.value for one in readings if isinstance(one, Sample)}
    probe.close()
    told = {name: (ours.get(name), value) for name, value in said.items()}
    print(json.dumps(told))
    for name, (_, scale, within) in ASKED.items():
        if said[name].startswith("["):  # [N/A]: this card does not tell it; then we do not either
            assert ours.get(name) is None, told
            continue
        theirs = float(said[name]) * scale
        assert ours[name] == pytest.approx(theirs, rel=within, abs=1e-9), told
    assert not [one for one in readings if isinstance(one, Event) and one.kind == "gpu.lost"]


def test_a_healthy_card_at_work_is_not_told_to_be_ill(workplace: Workplace) -> None:
    done = workplace.run([*workplace.script(TRAIN), "45"], timeout=150)
    assert (done.returncode, done.stderr) == (0, b"")
    answer = workplace.why()
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    journal = Journal(run / "journal")
    seen = {s.name: s.value for s in journal.samples() if s.name.startswith(("gpu0.link", "gpu0.rows", "gpu0.ecc"))}
    print(seen, journal.events("gpu.found")[0].data)
    assert answer["cause"] is None and answer["noticed"] == [], answer


def test_one_rank_with_nccl_is_healthy_and_its_exception_is_named(workplace: Workplace) -> None:
    script = workplace.script(RANKS)[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1", "--master-port", "29533", script]
    done = workplace.run(command, timeout=150)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert workplace.why()["cause"] is None
    failed = workplace.run([*command, "raise"], "--max-restarts", "0", timeout=150)
    assert failed.returncode != 0
    answer = workplace.why()
    assert answer["cause"]["id"] == "unhandled-exception", answer
    assert "sample 4711" in json.dumps(answer["cause"])


@pytest.mark.root
@pytest.mark.parametrize(
    ("xid", "words", "cause"),
    [
        (79, "GPU has fallen off the bus.", "gpu-lost"),
        (48, "An uncorrectable double bit error (DBE) has been detected on GPU", "gpu-hardware-fault"),
        (31, "Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f_00000000", "gpu-illegal-access"),
    ],
)  # fmt: skip
def test_a_line_of_the_driver_in_the_kernels_log_is_the_cause(
    workplace: Workplace, xid: int, words: str, cause: str
) -> None:
    if not os.environ.get(ALLOWED):
        pytest.skip(
            f"a made-up fault in the kernel's log alarms whoever watches this machine; {ALLOWED}=1 where it is yours"
        )
    process = workplace.start([*workplace.script(TRAIN), "12", "fails"])
    time.sleep(10)
    KERNEL_LOG.write_text(f"<3>NVRM: Xid (PCI:0000:3b:00): {xid}, pid=4711, name=python, {words}\n")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    answer = workplace.why()
    assert answer["cause"]["id"] == cause, answer
