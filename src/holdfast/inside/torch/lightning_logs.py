"""What a LightningModule logs in its training step, as for the whole batch.

A failed attempt's values are taken back. Those of the pieces are kept aside and logged once: put together in the way that
gives the value of a few rows out of that of their parts, where there is one; else the last piece's, and that is said.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Set, Tuple

from ..never_raise import guarded
from . import seams
from .batch_function import AGAIN, PIECE, TRIAL
from .loss_shares import ADDED_UP, ROWS, within
from .recompute import Call
from .step_undo import shadowed, without_chance

CLOSE = 1e-4  # of a value: the same but for rounding
PLACES = 4  # of a batch, at most, where a few rows are tried
AS_THE_LOSS, LARGEST, SMALLEST = "as the loss", "largest", "smallest"
ASKED_FOR = {"sum": ADDED_UP, "max": LARGEST, "min": SMALLEST}  # over an epoch: mostly the way within a batch, too

Logged = Dict[str, Tuple[Any, Any, Any]]  # by name: the value, and the arguments it was logged with


class Learnt:
    """Of one model."""

    def __init__(self, model: Any) -> None:
        self.ways: Dict[str, List[str]] = {}  # by name: how a value of the whole comes of those of its parts
        self.metrics = [module for module in model.modules() if seams.is_metric(module)]


class Logs:
    """Of one batch."""

    def __init__(self, trainer: Any, learnt: Learnt) -> None:
        self._results = seams.lightning_results(trainer)
        self._ways, self._metrics = learnt.ways, learnt.metrics
        # A value that is logged is never changed in place: to remember which it was is enough.
        self._before = [(key, metric, dict(metric.__dict__)) for key, metric in (self._results or {}).items()]
        self._counts = [seams.updates_of(metric) for metric in self._metrics]
        self._complete: List[Tuple[Any, Dict[str, Any]]] = []
        self._pieces: List[Logged] = []
        self._trials: List[Logged] = []
        self.last: Set[str] = set()  # names of which the last piece's is told

    def failed(self) -> None:
        """The whole batch did, before it was through with its training step."""
        # It is in a metric that was updated: that stays, and what the pieces do to it is undone.
        moved = [m for m, count in zip(self._metrics, self._counts) if seams.updates_of(m) != count]
        self._complete = [(metric, _state(metric)) for metric in moved]
        for key in set(self._results or ()) - {key for key, _, _ in self._before}:
            del self._results[key]
        for _, metric, attributes in self._before:
            metric.__dict__.clear()
            metric.__dict__.update(attributes)

    @contextlib.contextmanager
    def listening(self, why: str) -> Iterator[None]:
        """While some rows are run."""
        states = [(metric, _state(metric)) for metric in self._metrics]
        calls: Logged = {}

        def log(*args: Any, **kwargs: Any) -> None:
            value = args[2]
            calls[str(args[1])] = (value if seams.is_metric(value) else value.detach(), args, kwargs)

        done = False
        try:
            with contextlib.nullcontext() if self._results is None else shadowed(self._results, "log", log):
                yield
            done = why == PIECE
        finally:
            if not done:
                _put_back(states)
        {PIECE: self._pieces, TRIAL: self._trials, AGAIN: []}[why].append(calls)

    def ends(self, call: Call) -> None:
        """All pieces went through."""
        names = dict.fromkeys(name for piece in self._pieces for name in piece)
        if any(name not in self._ways for name in names):
            self._learn(call)
        _put_back(self._complete)
        complete = {id(metric) for metric, _ in self._complete}
        bounds = [(segment.begin, segment.end) for segment in call.segments]
        for name in names:
            seen = [piece[name] for piece in self._pieces if name in piece]
            value, args, kwargs = seen[-1]
            ways = self._ways.get(name) if len(seen) == len(bounds) else None
            if seams.is_metric(value):
                if kwargs.get("on_step") and id(value) not in complete:
                    self.last.add(name)
            elif ways:
                value = _joined(ways[0], [each for each, _, _ in seen], bounds, call)
            else:
                self.last.add(name)
            self._results.log(*args[:2], value, *args[3:], **kwargs)

    @guarded
    def _learn(self, call: Call) -> None:
        """On a few rows, as one piece and as two; no more than were just seen to fit."""
        few = max(2, min(max(segment.end - segment.begin for segment in call.segments), call.rows))
        middle = max(1, few // 3)
        with contextlib.suppress(MemoryError, RuntimeError), call.traces.unchanged(), without_chance(call.module):
            for place in range(PLACES):
                begin = (call.rows - few) * place // (PLACES - 1)
                cuts = [(begin, begin + middle), (begin + middle, begin + few)]
                self._trials = []
                for one, other in [(begin, begin + few), *cuts]:
                    call.run(TRIAL, one, other)
                self._heard(cuts, call)
                if all(len(ways) <= 1 for ways in self._ways.values()):
                    return

    def _heard(self, cuts: List[Tuple[int, int]], call: Call) -> None:
        whole, one, other = self._trials
        for name, (value, _, kwargs) in whole.items():
            if seams.is_metric(value) or value.numel() != 1 or name not in one or name not in other:
                continue
            parts, wanted = [one[name][0], other[name][0]], float(value)
            asked = ASKED_FOR.get(str(getattr(kwargs.get("reduce_fx"), "__name__", kwargs.get("reduce_fx"))), ROWS)
            ways = self._ways.get(name, [asked, ROWS, AS_THE_LOSS, ADDED_UP, LARGEST, SMALLEST])
            found = {way: float(_joined(way, parts, cuts, call)) for way in ways}
            self._ways[name] = [way for way in found if abs(found[way] - wanted) <= CLOSE * max(abs(wanted), 1e-6)]


def _joined(way: str, values: List[Any], bounds: List[Tuple[int, int]], call: Call) -> Any:
    if way == LARGEST:
        return max(values)
    if way == SMALLEST:
        return min(values)
    weighing = {ADDED_UP: None, ROWS: [1.0] * call.rows}.get(way, call.ways[0])
    first, last = bounds[0][0], bounds[-1][1]
    return sum(value * within(weighing, begin, end, first, last) for value, (begin, end) in zip(values, bounds))


def _state(metric: Any) -> Dict[str, Any]:
    def copied(value: Any) -> Any:
        if hasattr(value, "detach"):
            return value.detach().clone()
        return list(value) if isinstance(value, list) else value

    names = seams.states_of_metric(metric)
    return {name: copied(value) for name, value in metric.__dict__.items() if name in names}


def _put_back(states: List[Tuple[Any, Dict[str, Any]]]) -> None:
    for metric, state in states:
        metric.__dict__.update(state)
