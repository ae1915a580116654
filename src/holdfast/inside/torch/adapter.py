"""PyTorch: every loop that steps a torch.optim optimizer, whoever wrote it (plain, Lightning, Hugging Face)."""

from __future__ import annotations

import sys
from typing import Any

from .. import randomness
from ..guard import guarded
from ..telemetry import Recorder
from . import advice, step
from .around import telling
from .compiling import Compiling
from .rescue import limit_gpu
from .taken_over import rescuing
from .telemetry import Telemetry


def install(recorder: Recorder) -> None:
    torch: Any = sys.modules["torch"]
    wanted = recorder.settings.get("checkpoint")
    if wanted:
        guarded(randomness.begin_alike)(str(wanted["directory"]), bool(wanted.get("resume")))
    if "torch.optim.optimizer" not in sys.modules:
        recorder.event("adapter.unfit", framework="torch", reason="this torch has no torch.optim.optimizer")
        return
    if recorder.settings.get("policy") == "protect":
        limit_gpu(torch, (recorder.settings.get("rescue") or {}).get("gpu_budget_bytes"))
    if recorder.settings.get("policy") == "advise":
        advice.install()
    telemetry = Telemetry(recorder, torch, Compiling(recorder))
    # The order is fixed: what comes first is nearest to the user's own call.
    rescue = guarded(rescuing)(recorder, torch)
    missing = step.take_over(torch, [*([rescue] if rescue is not None else []), telling(telemetry)])
    if missing:
        recorder.event("adapter.partial", framework="torch", missing=missing)
