"""What is not the same in pieces, found on the first batch that is cut; and statistics of batch normalisation, which are
updated once for all pieces, each from where they were before the batch."""

from __future__ import annotations

from typing import Any

from ..disclosed_effects import apart, texts
from ..rescue_engine import CannotSplit
from .step_undo import StepUndo, put_back, statistics_of


class Effects:
    def __init__(self, torch: Any, traces: StepUndo) -> None:
        self._torch = torch
        self.traces = traces
        self.looked = False  # at what else a piece changes
        self._draws = False
        self._before: list[Any] = []
        self._pieces: list[tuple[int, list[Any]]] = []
        self._rows = 0
        self._measured = ""

    def begin(self, rows: int) -> None:
        self._pieces = []
        self._before = [buffer.detach().clone() for buffer in self.traces.statistics]

    def piece(self, rows: int, others: dict[str, tuple[Any, int]]) -> None:
        """One went through, of so many rows. `others`: the buffers as they were before the first one."""
        self._look(others)
        self._rows = self._rows or rows
        if self._before:
            self._pieces.append((rows, [buffer.detach().clone() for buffer in self.traces.statistics]))
            put_back(self._torch, self._before, self.traces.statistics)

    def _look(self, others: dict[str, tuple[Any, int]]) -> None:
        if self.looked:
            return
        self.looked = True
        self._draws = self.traces.random_state_moved()
        now = self.traces.other_buffers()
        changed = sorted(name for name in others.keys() | now.keys() if _moved(others.get(name), now.get(name)))
        if changed:
            raise CannotSplit(f"training changes what is no statistic of batch normalisation: {changed[0]}")

    def end(self) -> None:
        if not self._before or not self._pieces:
            return
        total = sum(rows for rows, _ in self._pieces)
        mixed = []
        for number, before in enumerate(self._before):
            values = [(rows, state[number]) for rows, state in self._pieces]
            if before.is_floating_point():
                mixed.append(sum(value * (rows / total) for rows, value in values).to(before.dtype))
            else:
                mixed.append(values[-1][1])
        put_back(self._torch, mixed, self.traces.statistics)
        if not self._measured and len(self._pieces) > 1:
            self._measured = self._apart()
        self._pieces, self._before = [], []

    def _apart(self) -> str:
        """Root mean square over features, in units of what the batch has; of the layer where it is most."""
        means, variances, number = [0.0], [0.0], 0
        for module in self.traces.normalising:
            names = list(statistics_of(module))
            kept = 1.0 - (module.momentum if module.momentum is not None else 0.1)
            if kept < 1.0:
                mean = self._seen(number + names.index("running_mean"), kept)
                variance = self._seen(number + names.index("running_var"), kept)
                size = variance.mean(0) + 1e-12
                means.append(float((mean.var(0, unbiased=False) / size).mean()) ** 0.5)
                variances.append(float((variance.var(0, unbiased=False) / size**2).mean()) ** 0.5)
            number += len(names)
        return apart(len(self._pieces), max(means), max(variances))

    def _seen(self, number: int, kept: float) -> Any:
        """By each piece: all started from the same value, so what they left says what they saw."""
        before = self._before[number].double()
        return self._torch.stack([state[number].double() - kept * before for _, state in self._pieces]) / (1.0 - kept)

    def texts(self) -> list[str]:
        return texts(len(self.traces.normalising), self._rows, self._measured, self._draws)


def _moved(before: Any, now: Any) -> bool:
    return before is None or now is None or before[0] is not now[0] or before[1] != now[1]
