"""A good state, and all that has happened since: enough to find the exact step at which something became non-finite."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Set

from ...numerics.events import LOSS, METRIC
from ...telemetry import now
from .finiteness import is_finite
from .snapshot import Snapshot

MOST_BYTES = 64 << 20  # of batches since the good state…
MOST = 2000  # …and of them, too
REPLAY_S = 60.0  # after so long the exact step is not looked for any further

Run = Callable[[Any], Any]


class Assigned(NamedTuple):
    """A variable that was given a value between two steps: a learning rate, a metric that begins anew."""

    variable: Any
    value: Any


class Failing(NamedTuple):
    """The first step after which something was non-finite."""

    step: int
    place: int  # of the entry
    batch: Any
    before: Snapshot
    after: Snapshot
    logs: Any
    seen_in: str


class FlightRecorder:
    """`kinds`: of each variable, what it is (weights, slot, metric), as events say it."""

    def __init__(self, variables: Sequence[Any], kinds: Sequence[str], undefined: Optional[Set[int]] = None) -> None:
        self.variables, self.kinds = list(variables), list(kinds)
        self.undefined = set() if undefined is None else undefined  # ids of metrics' variables that were told once
        self.good: Optional[Snapshot] = None
        self.entries: List[Any] = []
        self.whole = True  # nothing is missing between the good state and now
        self.losses: List[Any] = []  # of the latest replay: step, state before and after, logs

    def place(self, variable: Any) -> int:
        return next(number for number, one in enumerate(self.variables) if one is variable)

    def check(self, step: int) -> Optional[str]:
        """Where something is non-finite; nothing: this state is the good one from now on."""
        state = Snapshot(self.variables, step)
        bad = self.bad_in(state)
        if bad is None:
            self.begin(state)
        return bad

    def begin(self, state: Snapshot) -> None:
        self.good, self.whole = state, True
        del self.entries[:]

    def forget(self) -> None:
        """Too much has happened since the good state."""
        self.whole = False
        del self.entries[:]

    def bad_in(self, state: Snapshot) -> Optional[str]:
        number = self.first_bad(state)
        return None if number is None else self.kinds[number]

    def first_bad(self, state: Snapshot) -> Optional[int]:
        for number, value in enumerate(state.values):
            if not is_finite(value) and id(self.variables[number]) not in self.undefined:
                return number
        return None

    def pass_over_metrics(self, state: Snapshot) -> None:
        """A metric that is undefined, and was told, hides nothing that comes later. Its loss is read by itself."""
        for variable, kind, value in zip(self.variables, self.kinds, state.values):
            if kind == METRIC and not is_finite(value):
                self.undefined.add(id(variable))
        if self.bad_in(state) is None:
            self.begin(state)

    def replay(self, run: Run, loss_of: Callable[[Any], Any]) -> Optional[Failing]:
        """Puts the good state back and goes through what happened since, with a look after each step. None where it all
        went well this time. The state is left as that of the step that failed, or of the last one."""
        assert self.good is not None
        self.good.put_back()
        began, before, step = now(), self.good, self.good.step
        self.losses = []
        for index, entry in enumerate(self.entries):
            if type(entry) is Assigned:
                entry.variable.assign(entry.value)
                before = Snapshot(self.variables, step)
                continue
            logs = run(entry)
            step += 1
            after = Snapshot(self.variables, step)
            self.losses.append((step, before, after, logs))
            del self.losses[:-12]
            loss = loss_of(logs)
            seen_in = LOSS if loss is not None and not is_finite(loss) else self.bad_in(after)
            if seen_in is not None:
                return Failing(step, index, entry, before, after, logs, seen_in)
            if now() - began > REPLAY_S:
                break
            before = after
        return None
