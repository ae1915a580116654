"""Non-finite numbers, noticed at the step that makes them: the loss before its backward pass, gradients before the update.

On the CPU a loss is there when `backward` is called: reading it takes a microsecond. Then the graph with all it has saved
is still alive and the weights are those the step began with, so the origin can be looked for on the spot.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections import deque
from typing import Any, Callable, Deque, Iterable, List, Optional, Tuple

from ...numerics import events
from ...numerics.events import Before, NonFinite
from ...numerics.plain_numbers import told
from ...numerics.room import is_ample
from ...telemetry import Recorder, now
from .. import seams
from ..outermost_call import Call, here
from ..telemetry import Telemetry
from . import origin
from .finite import first_bad, is_float, largest_finite
from .going_on import GoingOn
from .op_values import size_told
from .reduced_gradients import ReducedGradients

LOSSES = 64  # kept, of which the last ten are told
EXPLODED = 1e3  # times the usual loss
ORDINARY = 100.0  # what an operation is given that does not overflow by it
EXAMINED = 200  # bad losses of a run whose origin is looked for
TOLD = 20  # incidents of a run; a run with more has said what it has to
SCALER_SKIPS = 20  # in a row are ordinary: a loss scale finds its size
SMALL = 4096  # entries of a gradient that is looked at in every step
SHARE = 0.001  # of the run's time, for looking at all gradients
PROBE_EVERY_S = 0.01  # it takes 1.5 µs in a row, and 12 in a loop of 1 ms steps, whose caches have forgotten it
SLOWER = 1.2  # than a tenth of a second before, at most
ALLOWANCE_S = 0.02  # once: all gradients of each of the first steps, some hundred, in which most goes wrong
EACH_OF_THE_FIRST = 500  # steps has one gradient looked at, however short they are
AMONG = 6  # first parameters one of which is chosen for that


class Noticing:
    def __init__(self, recorder: Recorder, torch: Any, telemetry: Telemetry, going_on: GoingOn) -> None:
        self.recorder, self.torch, self.telemetry, self.going_on = recorder, torch, telemetry, going_on
        self.losses: Deque[Tuple[int, float]] = deque(maxlen=LOSSES)
        self.norms: Deque[Tuple[int, float]] = deque(maxlen=LOSSES)
        self.incidents = 0
        self.examined = 0
        self.told_at = -1
        self.lasting = 0  # losses in a row that were not finite
        self.full_due, self.full_at = True, 0.0
        self.allowance_s = ALLOWANCE_S
        self.every = 1  # updates from one look at a gradient to the next
        self._step_s = 0.0
        self.reduced = ReducedGradients(torch)
        self.together = False  # several ranks, which look at the same in each update
        self._probe_of: Callable[[], Any] = _nothing
        self._probe: Any = _nothing

    # -- the loss

    def loss_is(self, value: float, tensor: Any) -> Any:
        """Of every backward pass on the CPU whose loss is not finite. A loss to be differentiated instead, or None."""
        self.lasting += 1
        instead = None
        if self.examined < EXAMINED and (self.going_on.acts() or self.lasting == self.first_told()):
            self.examined += 1
            instead = self.bad_loss(tensor, sys._getframe(2))
            if instead is not None:
                self.lasting = 0
        elif self.going_on.acts() and not self.telemetry.scales:
            self.going_on.suspect = True
        self.losses.append((self.recorder.steps + 1, value))
        return instead

    def first_told(self) -> int:
        """Of bad losses in a row: a scaler leaves out ordinary ones."""
        return SCALER_SKIPS + 1 if self.telemetry.scales and self.lasting > 1 else 1

    def _scene(self, tensor: Any, frame: Any) -> origin.Scene:
        feeding, room = self.telemetry.loading.feeding(), is_ample(self.recorder)
        return origin.Scene(self.torch, tensor, frame, list(here.calls), feeding, room)

    def bad_loss(self, tensor: Any, frame: Any) -> Any:
        scene = self._scene(tensor, frame)
        facts = origin.of_loss(scene)
        by_scaler = self.telemetry.scales
        ordinary = by_scaler and facts["origin"] not in (events.INPUT, events.TARGET, events.WEIGHTS)
        if ordinary and self.lasting <= SCALER_SKIPS:
            return None
        step = self.recorder.steps + 1
        facts["step"] = step - 1 if facts["origin"] == events.WEIGHTS else step
        if facts["origin"] == events.WEIGHTS and self.told_at >= step - 1 and not self.going_on.acts():
            return None  # what that update did was told when its gradients were seen
        self.tell({**facts, "seen_at": step, "seen_in": events.LOSS, "skipped_by_scaler": by_scaler}, scene)
        if by_scaler:
            return None
        return self.going_on.after_bad_loss(facts, scene, self.explodes(facts))

    def explodes(self, facts: NonFinite) -> bool:
        """It grew out of its range, and was not made at once: by the losses before, or by an operation that overflowed."""
        losses = [value for _, value in self.losses if math.isfinite(value)]
        self.going_on.usual_loss = usual = sorted(map(abs, losses))[len(losses) // 4] if losses else None
        norms = sorted(value for _, value in self.norms)
        self.going_on.usual_norm = norms[len(norms) // 4] if norms else None
        grew = usual is not None and max(map(abs, losses[-3:])) > EXPLODED * max(usual, 1e-6)
        values = facts.get("values") or ""
        size = size_told(values)
        overflowed = size is not None and size >= ORDINARY and facts["origin"] != events.WEIGHTS
        return grew or overflowed or values.startswith("exp of")

    # -- gradients

    def gradients(self, optimizer: Any, keep_late: Callable[[Any], None]) -> None:
        """Before each update: one small gradient, and on the CPU all of them as often as that costs little."""
        if self._probe_of() is not optimizer:
            self._choose(optimizer)
        parameter = self._probe()
        gradient = parameter.grad if parameter is not None else None
        if gradient is not None and gradient.is_cuda:
            keep_late(gradient)
            return
        if self.full_due or self.allowance_s > 0.0:
            self.full_due = False
            bad = self.all_gradients(optimizer)
        elif gradient is not None:
            value = gradient.dot(gradient).item()  # 1.2 µs; a sum takes 2.5
            bad = value - value != 0.0
        else:
            return
        if bad:
            self.bad_gradient(optimizer)

    def probe_is_fine(self, optimizer: Any) -> bool:
        if self._probe_of() is not optimizer or (self.together and not self.reduced.are_fine(optimizer)):
            return False
        parameter = self._probe()
        gradient = parameter.grad if parameter is not None else None
        if gradient is not None and gradient.is_cuda:
            return False
        if self.full_due or self.allowance_s > 0.0:
            self.full_due = self.all_gradients(
                optimizer
            )  # a bad one is looked at again, and told, outside of the short cut
            return not self.full_due
        if gradient is None:
            return True
        value = gradient.dot(gradient).item()
        return value - value == 0.0  # type: ignore[no-any-return]

    def pace(self, step_s: float) -> None:
        """Ten times a second. In short steps one gradient is looked at every few of them, after the first hundreds."""
        self.full_due = now() >= self.full_at
        self._step_s = (
            min(step_s, SLOWER * self._step_s) if self._step_s else step_s
        )  # a pause of the script is no long step
        if self.recorder.steps > EACH_OF_THE_FIRST and not self.together:
            self.every = max(1, int(PROBE_EVERY_S / max(self._step_s, 1e-6)))

    def _choose(self, optimizer: Any) -> None:
        """A bias of the first layer: what goes wrong on the way back comes down to it."""
        if any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
            self._probe_of = weakref.ref(optimizer)  # a closure makes them later
        self._probe = _nothing
        self.together = self.going_on.may_act_together()
        if self.together:
            self.every = 1
        first = [p for group in optimizer.param_groups for p in group["params"]][:AMONG]
        kinds = (self.torch.float32, self.torch.float64)
        small = [
            p
            for p in first
            if p.numel() <= SMALL and p.dim() == 1 and p.dtype in kinds and is_float(self.torch, p.grad)
        ]
        if small:
            self._probe = weakref.ref(min(small, key=lambda each: each.numel()))

    def _is_plain(self, gradient: Any) -> bool:
        return gradient is not None and gradient.device.type == "cpu" and is_float(self.torch, gradient)

    def all_gradients(self, optimizer: Any) -> bool:
        began = now()
        norm = self.norm_of(optimizer)
        took = now() - began
        self.full_at = began + took / SHARE
        self.allowance_s -= took
        if norm is None:
            return False
        if math.isfinite(norm):
            self.norms.append((self.recorder.steps + 1, norm))
            return False
        return True

    def norm_of(self, optimizer: Any) -> Optional[float]:
        torch = self.torch
        gradients = [
            p.grad
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None and self._is_plain(p.grad)
        ]
        if not gradients:
            return None
        with torch.no_grad():
            norms = seams.norms_of(torch, gradients) or [torch.linalg.vector_norm(each) for each in gradients]
            return float(torch.linalg.vector_norm(torch.stack([each.float() for each in norms])))

    def bad_gradient(self, optimizer: Any) -> None:
        """Suspected: a sum beyond the range of its type is not finite, either."""
        torch, telemetry = self.torch, self.telemetry
        named = names_of(optimizer, here.calls)
        bad = first_bad(torch, ((name, p.grad) for name, p in named))
        if not bad:
            return
        scene = self._scene(None, sys._getframe(1))
        weights = origin.bad_weights(scene)
        if weights and self.told_at >= 0 and not self.going_on.acts():
            return  # it was told what spoiled them
        facts = origin.of_weights(weights) if weights else origin.of_gradient(scene)
        if facts["origin"] == events.BACKWARD and self.going_on.ranks() > 1:
            ranks = self.going_on.ranks()
            how = f"the gradients are those of {ranks} ranks together, and the loss of this one was finite: another rank's may have done it"
            facts = {"origin": events.UNKNOWN, "reproduced": None, "replay": how}
        step = self.recorder.steps + 1
        if facts.get("values") is None and not facts.get("input"):
            facts["values"] = f"{len(bad)} of {len(named)} gradients are not finite, the first is that of {bad[0]}"
        by_scaler = getattr(optimizer, "found_inf", None) is not None and telemetry.scales
        self.tell(
            {**facts, "step": step, "seen_at": step, "seen_in": events.GRADIENT, "skipped_by_scaler": by_scaler}, scene
        )
        self.going_on.after_bad_gradient(facts, scene, self.explodes(facts))

    def bad_compiled_step(self, step: int) -> None:
        facts: NonFinite = {"origin": events.UNKNOWN, "reproduced": None}
        facts["replay"] = "the whole step is one compiled function: nothing of it can be run again"
        scene = origin.Scene(self.torch, None, None, [])
        self.tell({**facts, "step": step, "seen_at": step, "seen_in": events.LOSS, "skipped_by_scaler": False}, scene)

    def of_all_ranks(self, optimizer: Any) -> None:
        """Whether the update is left out, by what is the same on every rank. A scaler decides that by itself."""
        self.going_on.suspect = False  # of another optimizer's gradients, which may be each rank's own
        if not self.telemetry.scales and not self.reduced.are_fine(optimizer) and self.reduced.are_everyones(optimizer):
            if self.told_at != self.recorder.steps + 1:
                self.bad_gradient(optimizer)
            self.going_on.leave_out_together(models_of(here.calls))

    def told_late(self, facts: NonFinite, scene: origin.Scene) -> None:
        """Of a GPU, some steps after it happened; a scaler has left the update out, or the weights are bad by now."""
        if not facts["skipped_by_scaler"] or facts["origin"] == events.INPUT:
            self.tell(facts, scene)

    # -- telling

    def tell(self, facts: NonFinite, scene: origin.Scene) -> None:
        self.incidents += 1
        self.told_at = facts["step"]
        if self.incidents > TOLD:
            return
        facts["before"] = self.before(scene)
        facts["half"] = half_of(self.torch, scene, (facts.get("at") or {}).get("dtype"))
        events.tell_non_finite(self.recorder, facts)

    def before(self, scene: origin.Scene) -> Before:
        step = self.recorder.steps + 1
        found: Before = {
            "losses": [[at, told(value)] for at, value in self.losses if at < step][-10:],
            "gradient_norms": [[at, told(value)] for at, value in self.norms if at < step][-10:],
        }
        weights = [p.detach() for model in scene.models() for p in model.parameters() if is_float(self.torch, p)]
        if weights:
            largest = max(
                float(weight.abs().max()) for weight in weights
            )  # NaN is passed on by torch's max, not by Python's
            found["largest_weight"] = told(largest)
            found["weights_finite"] = not first_bad(self.torch, (("", weight) for weight in weights))
        largest_input = largest_finite(self.torch, (value for _, value in scene.given() if is_float(self.torch, value)))
        if largest_input is not None:
            found["largest_input"] = told(largest_input)
        rate = self.going_on.rate()
        if rate is not None:
            found["rate"] = told(rate)
        return found


def models_of(calls: Iterable[Call]) -> List[Any]:
    found = [what if hasattr(what, "named_parameters") else what.model for what, _, _ in calls]
    return list({id(model): model for model in found}.values())


def names_of(optimizer: Any, calls: Iterable[Call]) -> List[Tuple[str, Any]]:
    """Parameters of an optimizer with the names the models have for them."""
    known = {id(p): name for model in models_of(calls) for name, p in model.named_parameters()}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return [(known.get(id(p), f"parameter {number}"), p) for number, p in enumerate(parameters)]


def half_of(torch: Any, scene: origin.Scene, computed_in: Optional[str]) -> Optional[str]:
    if computed_in in ("float16", "bfloat16"):
        return computed_in
    kinds = {p.dtype for model in scene.models() for p in model.parameters()}
    for kind in (torch.float16, torch.bfloat16):
        if kind in kinds:
            return str(kind).replace("torch.", "")
    return None


def _nothing() -> Any:
    return None
