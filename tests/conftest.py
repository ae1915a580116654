from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.workplace import workplace

__all__ = ["workplace"]


def pytest_configure() -> None:
    """Started by nohup or from a script in the background, we would hand on signals that are ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root"))
        if item.get_closest_marker("gpu") and not Path("/dev/nvidiactl").exists():
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))
