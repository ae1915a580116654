from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .machine import FakeMachine

MEMORY = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A real memory group of version 1 with 50 MiB, for what must not hurt its neighbours."""
    if os.geteuid() != 0 or not (MEMORY / "memory.limit_in_bytes").exists() or not os.access(MEMORY, os.W_OK):
        pytest.skip("needs root and a writable memory group of version 1")
    group = MEMORY / f"holdfast-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no group can be made: {error}")
    (group / "memory.limit_in_bytes").write_text(str(50 << 20))
    yield group
    until = time.monotonic() + 20
    while group.exists():  # the kernel lets go of it a moment after its last process is gone
        try:
            group.rmdir()
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)
