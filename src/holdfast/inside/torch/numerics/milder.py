"""A run that exploded goes on more mildly for a while: smaller rate, clipped gradients. The script's own rate stays its own:
it is another one only within the update."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from .. import seams
from .finite import is_float

# (part of the script's rate, for so many steps): each time it explodes again the next one.
STAGES = ((0.1, 1000), (0.01, 10_000), (0.001, 1 << 60))
TIMES_THE_USUAL = 5.0  # the norm that gradients are clipped to


class Milder:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._stage = -1
        self.until = 0  # the last step it is for; 0: not at all
        self.factor = 1.0
        self.limit: Optional[float] = None
        self._most: Optional[float] = None
        self._rates: List[Tuple[Any, Any]] = []

    def begin(self, step: int, usual_norm: Optional[float], sound_rate: float) -> None:
        """`sound_rate`: of the state that was put back. A schedule may have raised it since."""
        self._most = sound_rate or None
        self._stage = min(self._stage + 1, len(STAGES) - 1)
        self.factor, steps = STAGES[self._stage]
        self.until = step + steps
        if usual_norm is not None:
            self.limit = TIMES_THE_USUAL * usual_norm

    def in_words(self) -> str:
        clipped = f", gradients clipped to a norm of {self.limit:.3g}" if self.limit else ""
        steps = self.until if self.until < 1 << 50 else None
        most = f" and at most {self.factor * self._most:.3g}" if self._most else ""
        until = f" up to step {steps}" if steps else ""
        return f"the learning rate is {self.factor:g} of the script's{most}{until}{clipped}"

    def before_update(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            rate = group.get("lr")
            self._rates.append((group, rate))
            part = self.factor * (min(1.0, self._most / float(rate)) if self._most and float(rate) else 1.0)
            group["lr"] = rate.clone().mul_(part) if hasattr(rate, "clone") else rate * part
        if self.limit is not None:
            self._clip(optimizer, self.limit)

    def _clip(self, optimizer: Any, limit: float) -> None:
        torch = self._torch
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if is_float(torch, p.grad)]
        if not gradients:
            return
        with torch.no_grad():
            norms = seams.norms_of(torch, gradients) or [torch.linalg.vector_norm(each) for each in gradients]
            norm = float(torch.linalg.vector_norm(torch.stack([each.float() for each in norms])))
            if limit < norm < float("inf"):
                for gradient in gradients:
                    gradient.mul_(limit / norm)

    def after_update(self, step: int) -> None:
        rates, self._rates = self._rates, []
        for group, rate in rates:
            group["lr"] = rate
        if step >= self.until:
            self.until, self.factor, self.limit = 0, 1.0, None
