"""PyTorch: every loop that steps a torch.optim optimizer, whoever wrote it (plain, Lightning, Hugging Face)."""

from __future__ import annotations

import sys
from typing import Any

from .. import randomness
from ..never_raise import guarded
from ..telemetry import Recorder
from . import oom_advice, step
from .backward_call import limit_gpu
from .compile_phase import Compiling
from .kept_loops import keeping
from .module_hooks import rescuing
from .telemetry import Telemetry
from .wrapped_calls import telling


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
        oom_advice.install()
    telemetry = Telemetry(recorder, torch, Compiling(recorder))
    # The order is fixed: what comes first is nearest to the user's own call.
    rescue = guarded(rescuing)(recorder, torch)
    keep = guarded(keeping)(recorder, torch, wanted, telemetry.loading.went_on)
    missing = step.take_over(torch, [one for one in (keep, rescue, telling(telemetry)) if one is not None])
    if missing:
        recorder.event("adapter.partial", framework="torch", missing=missing)
