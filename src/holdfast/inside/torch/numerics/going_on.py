"""How a run goes on after something non-finite, by the origin: bad rows are left out, a batch is left out, a state that is
bad already is replaced by the newest good one, and a run that explodes goes on more mildly. Each time it is said.

Without gradients an optimizer leaves parameters, slots and counters as they are: so an update is left out.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, List, Optional, Tuple

from ...numerics import events
from ...numerics.bound import Bound, NumbersGoneBad
from ...numerics.events import NonFinite
from ...telemetry import Recorder
from .. import among_ranks
from .finite import first_bad
from .good_state import GoodStates
from .milder import Milder
from .origin import Scene
from .rows_left_out import without_rows

BAD_DATA = (100, 1000)  # batches with bad rows in so many steps: a tenth of the data
TOLD = 20  # times that are told one by one
EXPLODED = 1e3  # times the usual loss
DATA = (events.INPUT, events.TARGET)


class GoingOn:
    def __init__(self, recorder: Recorder, torch: Any) -> None:
        self._recorder, self._torch = recorder, torch
        self._bound, self._bound_of_data = Bound(), Bound(*BAD_DATA)
        self._protects = recorder.settings.get("policy") == "protect"
        self.suspect = False  # the gradients under way may not be used for an update
        self.stop = ""  # why training is to end at the next backward pass
        self._origin = events.UNKNOWN
        self._explodes = False
        self._aside: List[Tuple[Any, Any]] = []
        self._optimizer: Any = lambda: None
        self._models: List[Any] = []
        self._roll_back = False
        self._acted = self._said = False  # for the step under way
        self.good = GoodStates(torch, recorder.settings.get("groups"))
        self.milder = Milder(torch)
        # Of those who see batches before the model does:
        self.data_is_bad: Callable[[], None] = lambda: None
        self.impute: Callable[[str, Any, int], bool] = lambda *_: False

    def acts(self) -> bool:
        """Several ranks must all do the same: alone none does anything, and `leave_out_together` all do."""
        return self._protects and self.ranks() == 1

    def may_act_together(self) -> bool:
        return self._protects and self.ranks() > 1

    def ranks(self) -> int:
        return among_ranks.count(self._torch)

    # -- what was noticed

    def after_bad_loss(self, facts: NonFinite, scene: Scene, explodes: bool) -> Any:
        """A loss to be differentiated instead, of the good rows; None where there is none."""
        if not self.acts():
            return None
        self._noticed(facts, scene, explodes)
        if facts["origin"] not in DATA:
            return None
        self._acted = True
        self.data_is_bad()
        if not self._bound_of_data.allows(self._step()):
            if facts["origin"] != events.INPUT or not self._imputes(facts, scene):
                self.give_up(self._step())
            return None
        if self.good.copies:
            self.good.copies[-1].put_back_buffers(self._torch, self._models)
        loss = without_rows(scene, facts)
        if loss is None:
            return None
        self.suspect = self._acted = False
        bad = facts["input"]
        rows = ", ".join(str(row) for row in bad["rows"])
        rows = (
            f"row {rows}"
            if bad["row_count"] == 1
            else f"rows {rows}" + ("" if bad["row_count"] <= len(bad["rows"]) else " …")
        )
        text = f"{rows} of the batch of step {self._step()} left out: {bad['name']} is {bad['what']} there"
        self._tell(self._step(), events.ROWS_LEFT_OUT, text, 0, self._bound_of_data.count)
        return loss

    def _imputes(self, facts: NonFinite, scene: Scene) -> bool:
        name = facts["input"]["name"]
        value = next((value for known, value in scene.inputs() if known == name), None)
        return bool(self.impute(name, value, self._step()))

    def after_bad_gradient(self, facts: NonFinite, scene: Scene, explodes: bool) -> None:
        if self.acts():
            self._noticed(facts, scene, explodes)

    def leave_out_together(self, models: List[Any]) -> None:
        """Of what all ranks have in common: each of them comes to it in the same update."""
        self.suspect, self._origin, self._models = True, events.UNKNOWN, models
        self._explodes = self._roll_back = False

    def after_bad_statistics(self, models: List[Any], layer: str, step: int) -> None:
        """Weights are as they should be: only the statistics are put back."""
        copies = self.good.copies
        if not self.acts() or not copies or not self._bound_of_data.allows(step):
            return
        copies[-1].put_back_buffers(self._torch, models)
        text = f"the running statistics of {layer} are those before step {copies[-1].step} again"
        self._tell(step, events.ROLLED_BACK, text, 0, self._bound_of_data.count)

    def _noticed(self, facts: NonFinite, scene: Scene, explodes: bool) -> None:
        self.suspect, self._origin, self._models = True, facts["origin"], scene.models()
        self._explodes = explodes and facts["origin"] not in DATA
        self._roll_back = facts["origin"] == events.WEIGHTS or self._explodes

    def _step(self) -> int:
        return self._recorder.steps + 1

    # -- the state to go back to

    def keep(self, optimizer: Any, losses: Any, models: List[Any]) -> None:
        """Before an update whose gradients are finite: then the state is good, if it is finite itself."""
        if self.may_act_together():
            self.good.take_buffers(self._step(), models)
            return
        if not self.acts():
            self.good.refused = True
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if losses and not first_bad(self._torch, (("", p) for p in parameters)):
            self.good.take(self._step(), losses[-1][1], optimizer, models)

    # -- the update

    def before_update(self, optimizer: Any) -> None:
        """While `suspect`, or more mildly."""
        if not self.suspect:
            self.milder.before_update(optimizer)
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not parameters or (not self._roll_back and not first_bad(self._torch, (("", p.grad) for p in parameters))):
            self._roll_back = False
            return  # the script has mended or dropped it itself
        bound = self._bound if self._roll_back else self._bound_of_data  # what one batch cannot do is left out with it
        if not self._acted and not bound.allows(self._step()):
            self.give_up(self._step())
        self._acted = True
        self._aside = [(p, p.grad) for p in parameters]
        for parameter in parameters:
            parameter.grad = None

    def new_step(self) -> None:
        """The first backward pass after an update."""
        self.suspect = self._acted = self._said = False

    @property
    def left_out(self) -> bool:
        """The update under way is not made."""
        return bool(self._aside)

    def after_update(self, optimizer: Any) -> None:
        """`recorder.steps` counts it already."""
        step = self._recorder.steps
        self._optimizer = weakref.ref(optimizer)
        if self.milder.until:
            self.milder.after_update(step)
        if not self._aside:
            return
        aside, self._aside = self._aside, []
        for parameter, gradient in aside:
            if parameter.grad is None:
                parameter.grad = gradient.detach().zero_()  # a script may read them, or add to them
        if not self._said and not self.stop:  # a step may have several optimizers
            self._said = True
            self._say_how(step)

    def _say_how(self, step: int) -> None:
        roll_back, self._roll_back = self._roll_back, False
        copy = self.good.best(self.usual_loss) if roll_back else None
        if copy is None:
            if roll_back:
                self.give_up(step)
                return
            if self.good.copies:
                self.good.copies[-1].put_back_buffers(self._torch, self._models)
            text = f"the update of step {step} was left out{self._where()}: its numbers were not finite"
            bound = self._bound_of_data if self._origin in DATA or self.ranks() > 1 else self._bound
            self._tell(step, events.BATCH_SKIPPED, text, 0, bound.count)
            return
        copy.put_back(self._torch)
        self.good.forget_newer(copy)
        lost = max(0, step - copy.step)
        text = f"weights and optimizer are those before step {copy.step} again"
        self._tell(step, events.ROLLED_BACK, text, lost, self._bound.count)
        if self._explodes:
            self.milder.begin(step, self.usual_norm, copy.rate)
            self._tell(step, events.RATE_LOWERED, self.milder.in_words(), 0, self._bound.count)

    def _where(self) -> str:
        return f" on all {self.ranks()} ranks" if self.ranks() > 1 else ""

    usual_loss: Optional[float] = None  # of the steps before, as the one who notices knows them
    usual_norm: Optional[float] = None

    def _tell(self, step: int, how: str, text: str, lost: int, times: int) -> None:
        if times <= TOLD or times % TOLD == 0:
            events.tell_went_on(self._recorder, step, how, text, lost, times)

    def give_up(self, step: int) -> None:
        times = self._bound.lately or self._bound_of_data.lately
        self.stop = f"holdfast: numbers are not finite at step {step}, and after {times} times there is no further help"
        events.tell_gave_up(self._recorder, step, times, self.stop)

    def raise_if_over(self) -> None:
        if self.stop:
            raise NumbersGoneBad(self.stop)

    def rate(self) -> Optional[float]:
        optimizer = self._optimizer()
        return None if optimizer is None else float(optimizer.param_groups[0].get("lr") or 0.0)
