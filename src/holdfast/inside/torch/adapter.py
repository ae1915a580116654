"""PyTorch: every loop that steps a torch.optim optimizer, whoever wrote it (plain, Lightning, Hugging Face)."""

from __future__ import annotations

import sys
from typing import Any, Optional

from .. import checkpoint_store, randomness
from ..never_raise import guarded
from ..seams import CHECKPOINT, RESCUE, RESUME, TELEMETRY, Abilities
from ..settings import rescue_wanted
from ..telemetry import Recorder
from . import compiled_steps, kept_loops, oom_advice, seams, step
from .backward_call import limit_gpu
from .compile_phase import Compiling
from .fed_batches import looking_at_batches
from .kept_loops import keeping
from .loop_rescue import of_process as rescue_of_process
from .module_hooks import rescuing
from .numerics.hooks import aspect_of, looking
from .telemetry import Telemetry
from .updates_by_hand import following
from .usual_step import UsualStep
from .wrapped_calls import telling


def install(recorder: Recorder) -> None:
    torch: Any = sys.modules["torch"]
    wanted = recorder.settings.get("checkpoint")
    if wanted:
        guarded(randomness.begin_alike)(str(wanted["directory"]), bool(wanted.get("resume")))
    can = Abilities("PyTorch", str(getattr(torch, "__version__", "?")), seams.SEEN, seams.OF_TORCH)
    asked = {TELEMETRY: True, CHECKPOINT: wanted, RESUME: wanted, RESCUE: rescue_wanted(recorder.settings)}
    can.tell(recorder, "torch", [ability for ability, is_asked in asked.items() if is_asked])
    if wanted:
        checkpoint_store.refuse_to_resume(recorder, wanted, "torch", can.why_not(RESUME))
    if recorder.settings.get("policy") == "protect":
        limit_gpu(torch, (recorder.settings.get("rescue") or {}).get("gpu_budget_bytes"))
    if recorder.settings.get("policy") == "advise":
        oom_advice.install()
    # The order is fixed: what comes first is nearest to the user's own call.
    telemetry = Telemetry(recorder, torch, Compiling(recorder)) if can.can(TELEMETRY) else None
    keep, rescue = None, guarded(rescuing)(recorder, torch) if can.can(RESCUE) else None
    if telemetry is not None and can.can(CHECKPOINT) and can.can(RESUME):
        keep = guarded(keeping)(recorder, torch, wanted, telemetry.loading.went_on)
    told = telling(telemetry) if telemetry is not None else None
    looks = guarded(looking)(recorder, torch, telemetry, rescue is not None) if telemetry is not None else None
    numbers = aspect_of(looks, torch) if looks is not None else None
    by_hand = following(torch, telemetry) if telemetry is not None else None
    fed = guarded(looking_at_batches)(recorder, torch, looks) if looks is not None else None

    def shortened() -> Optional[UsualStep]:
        if telemetry is None:
            return None
        rescues = rescue_of_process(recorder, torch) if rescue is not None else None
        return UsualStep(
            torch, telemetry, kept_loops.of_process(), kept_loops.clearing_of_process(), rescues, looks, fed
        )

    batches = fed.aspect if fed is not None else None
    if telemetry is not None:
        guarded(compiled_steps.take_over)(torch, telemetry, looks)
    step.take_over(
        torch, [aspect for aspect in (keep, rescue, told, numbers, by_hand, batches) if aspect is not None], shortened
    )
