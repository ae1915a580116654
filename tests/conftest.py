from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import allowed_skips, side_by_side
from tests.allowed_skips import has_no_gpu, why_no_root
from tests.side_by_side import is_worker
from tests.workplace import workplace

__all__ = ["workplace"]

# The same examples in every run, however long a loaded machine takes for one, and nothing kept from the last time.
settings.register_profile(
    "ours", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ours")


# OpenMP's threads wait for each other without letting go: on a busy machine with few cores most of the time is spent so.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Hundreds of tests let a run fail, and half a second of processor time each would go into a report that none of them reads.
os.environ.setdefault("HOLDFAST_REPORT", "off")


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (allowed_skips, side_by_side):
        config.pluginmanager.register(plugin)
    # Started by nohup or from a script in the background, we would hand on signals that are ignored.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    unable = why_no_root()
    for item in items:
        if unable and item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason=unable))
        if item.get_closest_marker("gpu") and has_no_gpu():
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Rings of training processes that were started without a watcher: nobody else takes them out of memory."""
    if is_worker(session.config):
        return  # the others' tests may still read theirs
    for ring in Path("/dev/shm").glob("holdfast-*.ring"):
        if not Path(f"/proc/{ring.name.split('-')[1]}").exists():
            ring.unlink(missing_ok=True)
