"""The laboratory's limits around a test's program; where a machine cannot set them, the test is skipped and says why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from lab.case import Limits
from lab.stage import CannotStage, Stage


@contextmanager
def staged(limits: Limits, name: str) -> Iterator[Stage]:
    with ExitStack() as stack:
        try:
            stage = stack.enter_context(Stage(limits, f"holdfast-{os.getpid()}-{name}"[:60]))  # others test beside us
        except CannotStage as reason:
            pytest.skip(str(reason))
        yield stage
