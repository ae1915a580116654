"""The short cut of usual steps ends where a state is taken: gradients are looked at before the next backward pass then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from holdfast.inside.telemetry import Recorder  # noqa: E402
from holdfast.inside.torch.compile_phase import Compiling  # noqa: E402
from holdfast.inside.torch.loop_framework import TorchLoops  # noqa: E402
from holdfast.inside.torch.telemetry import Telemetry  # noqa: E402
from holdfast.inside.torch.usual_step import UsualStep  # noqa: E402
from tests.inside.recorded import Events  # noqa: E402


def test_taking_a_state_ends_it() -> None:
    recorder = Recorder(Events(), {})  # type: ignore[arg-type]
    telemetry = Telemetry(recorder, torch, Compiling(recorder))
    framework = TorchLoops(torch, iter, next)
    UsualStep(torch, telemetry, SimpleNamespace(framework=framework), None, None, None, None)  # type: ignore[arg-type]
    telemetry.lane.loop, telemetry.lane.optimizer = telemetry.loops.here, 7
    framework.taking()
    assert telemetry.lane.optimizer == 0
