from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.checks.contract import Here
from tests.probes.fake_nvml import FakeNvml
from tests.probes.machine import FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    root = tmp_path / "root"
    root.mkdir()
    return FakeMachine(root)


@pytest.fixture
def here(machine: FakeMachine) -> Here:
    """A place on the fake machine, seen by this process: how many processors there are is asked of the kernel."""
    work = Path("/work")
    machine.folder("/work")
    machine.folder("/tmp")
    return Here(runs=work / ".holdfast", cwd=work, python=sys.executable, environment={}, root=machine.root, uid=1000)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake
