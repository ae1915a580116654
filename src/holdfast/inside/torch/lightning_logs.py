"""What a LightningModule logs in its training step, as for the whole batch.

A failed attempt's values are taken back. Those of the pieces are kept aside and logged once: put together in the way that
gave the value of a few rows out of that of their parts, where there is one; else the last piece's, and that is said.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

from .loss_shares import ADDED_UP, ROWS
from .step_undo import shadowed

CLOSE = 1e-4  # of a value: the same but for rounding
LARGEST, SMALLEST = "largest", "smallest"

Call = tuple[tuple[Any, ...], dict[str, Any]]


class Learnt:
    """Of one model."""

    def __init__(self, model: Any) -> None:
        self.ways: dict[str, list[str]] = {}  # by name: how a value of the whole comes of those of its parts
        self.metrics: list[Any] = []
        self.look_again(model)

    def look_again(self, model: Any) -> None:
        self.metrics = [module for module in model.modules() if _is_metric(module)]


class Logs:
    """Of one batch."""

    def __init__(self, trainer: Any, learnt: Learnt) -> None:
        self._results = trainer._results
        self._ways, self._metrics = learnt.ways, learnt.metrics
        # A value that is logged is never changed in place: to remember which it was is enough.
        self._before = [(key, metric, dict(metric.__dict__)) for key, metric in (self._results or {}).items()]
        self._counts = [metric._update_count for metric in self._metrics]
        self._complete: list[tuple[Any, dict[str, Any]]] = []
        self._in_pieces = self._logged = False
        self._in_piece: list[tuple[Any, dict[str, Any]]] = []
        self._pieces: list[dict[str, tuple[Any, Call]]] = []
        self._trials: list[dict[str, float]] = []
        self._last: set[str] = set()
        self._unsure: set[str] = set()

    # -- a batch in pieces

    def failed(self, came_to_backward: bool) -> None:
        if self._in_pieces:
            _put_back(self._in_piece)
            return
        self._in_pieces = True
        # The whole batch is in a metric that was updated: it stays, and what the pieces do to it is undone.
        moved = [m for m, count in zip(self._metrics, self._counts) if m._update_count != count]
        self._complete = [(metric, _state(metric)) for metric in moved]
        self._logged = came_to_backward  # all that training_step logs, and of the whole batch
        if self._results is None or self._logged:
            return
        for key in set(self._results) - {key for key, _, _ in self._before}:
            del self._results[key]
        for _, metric, attributes in self._before:
            metric.__dict__.clear()
            metric.__dict__.update(attributes)

    def begins(self) -> None:
        self._in_pieces = True
        self._pieces = []

    @contextlib.contextmanager
    def piece(self) -> Iterator[None]:
        self._in_piece = [(metric, _state(metric)) for metric in self._metrics]
        with self._caught() as calls:
            yield
        self._pieces.append(calls)

    def ends(self, rows: list[int], shares: list[float], known: list[str]) -> None:
        """`known`: the ways the loss is put together."""
        _put_back(self._complete)
        if self._logged:
            return
        complete = {id(metric) for metric, _ in self._complete}
        for name in dict.fromkeys(name for piece in self._pieces for name in piece):
            seen = [piece[name] for piece in self._pieces if name in piece]
            value, (args, kwargs) = seen[-1]
            if _is_metric(value):
                if kwargs.get("on_step") and id(value) not in complete:
                    self._last.add(name)
            else:
                asked = self._asked_for(name, kwargs.get("reduce_fx"))
                value = self._joined(name, [each for each, _ in seen], rows, shares, asked or self._kinds(name, known))
            self._results.log(*args[:2], value, *args[3:], **kwargs)

    def _asked_for(self, name: str, reduction: Any) -> list[str]:
        """How it is put together over an epoch, where that may also be the way within a batch."""
        way = {"sum": ADDED_UP, "max": LARGEST, "min": SMALLEST}.get(str(getattr(reduction, "__name__", reduction)), "")
        return [way] if way in self._ways.get(name, []) else []

    def _joined(self, name: str, values: list[Any], rows: list[int], shares: list[float], ways: list[str]) -> Any:
        ways = ways if len(values) == len(rows) else []
        if len(ways) > 1:
            self._unsure.add(name)
        way = ways[0] if ways else ""
        if way == ROWS:
            return sum(value * (count / sum(rows)) for value, count in zip(values, rows))
        if way == ADDED_UP:
            return sum(values)
        if way in (LARGEST, SMALLEST):
            return max(values) if way == LARGEST else min(values)
        if way:
            return sum(value * share for value, share in zip(values, shares))
        self._last.add(name)
        return values[-1]

    def _kinds(self, name: str, known: list[str]) -> list[str]:
        """The ways that are left for a value and differ: where all values so far were 0, any of them gives 0."""
        ways = self._ways.get(name, [])
        as_the_loss = [] if ADDED_UP in known or ROWS in known else [way for way in known if way in ways][:1]
        return [way for way in (ROWS, *as_the_loss, ADDED_UP, LARGEST, SMALLEST) if way in ways]

    def together(self, extras: list[dict[str, Any]], rows: list[int]) -> dict[str, Any]:
        """What `training_step` returned beside the loss: rows after rows, or the last piece's."""
        joined = dict(extras[-1])
        for name in joined:
            parts = [extra.get(name) for extra in extras]
            if all(_has_rows(part, count) for part, count in zip(parts, rows)):
                joined[name] = sys.modules["torch"].cat(parts)
            elif len(extras) > 1:
                self._last.add(name)
        return joined

    def disclosures(self) -> list[str]:
        texts = {
            "of what training_step logs or returns, the last micro-batch's is told": self._last,
            "whether what training_step logs is a mean or a sum could not be told": self._unsure,
        }
        return [f"{text}: {', '.join(sorted(names))}" for text, names in texts.items() if names]

    # -- a few rows, as one piece and as two

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        states = [(metric, _state(metric)) for metric in self._metrics]
        try:
            with self._caught() as calls:
                yield
            self._trials.append({n: float(v) for n, (v, _) in calls.items() if not _is_metric(v) and v.numel() == 1})
        finally:
            _put_back(states)

    def heard(self, of_parts: dict[str, tuple[float, float]]) -> None:
        whole, one, other = self._trials[-3:]
        self._trials = []
        for name, value in whole.items():
            if name not in one or name not in other:
                continue
            a, b = one[name], other[name]
            found = {way: a * first + b * second for way, (first, second) in of_parts.items()}
            found.update({LARGEST: max(a, b), SMALLEST: min(a, b)})
            good = [way for way, joined in found.items() if abs(joined - value) <= CLOSE * max(abs(value), 1e-6)]
            known = self._ways.get(name)
            self._ways[name] = good if known is None else [way for way in known if way in good or way not in found]

    def unclear(self, known: list[str]) -> bool:
        return any(len(self._kinds(name, known)) > 1 for name in self._ways)

    @contextlib.contextmanager
    def _caught(self) -> Iterator[dict[str, tuple[Any, Call]]]:
        calls: dict[str, tuple[Any, Call]] = {}
        if self._results is None:
            yield calls
            return

        def log(*args: Any, **kwargs: Any) -> None:
            value = args[2]
            calls[str(args[1])] = (value if _is_metric(value) else value.detach(), (args, kwargs))

        with shadowed(self._results, "log", log):
            yield calls


def _is_metric(value: Any) -> bool:
    return hasattr(value, "_update_count") and hasattr(value, "_defaults")


def _state(metric: Any) -> dict[str, Any]:
    def copied(value: Any) -> Any:
        if hasattr(value, "detach"):
            return value.detach().clone()
        return list(value) if isinstance(value, list) else value

    names = {"_update_count", "_computed", "_forward_cache", "_update_called"} | set(metric._defaults)
    return {name: copied(value) for name, value in metric.__dict__.items() if name in names}


def _put_back(states: list[tuple[Any, dict[str, Any]]]) -> None:
    for metric, state in states:
        metric.__dict__.update(state)


def _has_rows(part: Any, rows: int) -> bool:
    return isinstance(part, sys.modules["torch"].Tensor) and part.dim() > 0 and part.shape[0] == rows
