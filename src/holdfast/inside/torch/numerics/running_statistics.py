"""NaN in the running statistics of a normalisation. A forward pass writes them, whatever the script then does with its loss: one
that leaves out a bad batch by itself trains on, and the first evaluation shows it.

Looked at where a forward pass was made that no backward pass followed, before an evaluation, and before a good state is kept. What
is NaN when it is first seen is so on purpose; an infinity may be, too.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Dict, List, Tuple

from ...numerics import events
from ...numerics.events import NonFinite
from ...telemetry import now
from ..outermost_call import here
from . import origin
from .finite import is_float
from .noticing import Noticing, models_of

NAMES = "running_"  # how PyTorch's normalisations, and those made after them, name their statistics
SHARE = 0.005  # of the time between two evaluations

Named = Tuple[str, Any]


class RunningStatistics:
    def __init__(self, notices: Noticing) -> None:
        self._notices, self._torch = notices, notices.torch
        self.usual_calls = 0  # noted until an update
        self._seen: Dict[int, Any] = {}  # statistics that had a number once, weakly
        self._looked_at, self._cost_s = 0.0, 0.0

    def before_update(self) -> None:
        """More calls were noted than before: one of them may have been given up."""
        calls = list(here.calls)
        if not self.look(models_of(calls)):
            self.usual_calls = len(calls)

    def before_evaluation(self, model: Any) -> None:
        began = now()
        if not model.training or here.again or self._cost_s > SHARE * (began - self._looked_at):
            return
        self.look([model])
        self._looked_at = now()
        self._cost_s = self._looked_at - began

    def look(self, models: List[Any]) -> bool:
        """Whether something was bad."""
        bad = [(name, each) for name, each in self._statistics(models) if bool(each.isnan().any())]
        bad = [(name, each) for name, each in bad if self._is_known(each)]
        if bad:
            self._tell(bad, models)
        return bool(bad)

    def _statistics(self, models: List[Any]) -> List[Named]:
        torch, found = self._torch, []
        for model in models:
            for name, each in model.named_buffers():
                if name.rsplit(".", 1)[-1].startswith(NAMES) and is_float(torch, each) and each.is_cpu:
                    found.append((name, each))
                    if id(each) not in self._seen and not bool(each.isnan().any()):
                        self._seen[id(each)] = weakref.ref(each)
        return found

    def _is_known(self, buffer: Any) -> bool:
        found = self._seen.get(id(buffer))
        return found is not None and found() is buffer

    def _tell(self, bad: List[Named], models: List[Any]) -> None:
        notices, torch = self._notices, self._torch
        for _, each in bad:
            del self._seen[id(each)]  # told once, until they have a number again
        scene = origin.Scene(torch, None, sys._getframe(2), list(here.calls), notices.telemetry.loading.feeding())
        facts: NonFinite = origin.of_input(scene) or {"origin": events.UNKNOWN, "reproduced": None}
        layer = bad[0][0].rsplit(".", 1)[0] if "." in bad[0][0] else type(models[0]).__name__
        facts["at"] = {"layer": layer, "op": None}
        facts["values"] = f"{len(bad)} running statistics are NaN, the first is {bad[0][0]}"
        facts["replay"] = "no update was made with it: the forward pass alone has changed them"
        step = notices.recorder.steps + (1 if here.calls else 0)
        notices.tell({**facts, "step": step, "seen_at": step, "seen_in": events.STATISTICS}, scene)
        notices.going_on.after_bad_statistics(models, layer, step)
