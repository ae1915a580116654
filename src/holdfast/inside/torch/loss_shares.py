"""The share a part of a batch has in the whole: found by trying, on a few rows as one piece and as two.

A loss may add its rows up, be their mean, or be a mean over the tokens that count, however a script says which do. All
that is known here are ways a share could be computed from the batch. Those that make the whole out of its parts stay;
where none does, the loss is over the whole batch. Ways that agree on all rows of a batch need not be told apart there;
as soon as they do not, rows on which they differ are tried.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Optional

from ..rescue_engine import CannotSplit

Weighing = Optional[list[float]]  # what each row counts; None: each part as it is, for they are added up
Measure = Callable[[int, int], Any]  # rows from, to -> a vector: gradients, or the loss

ADDED_UP, ROWS = "added up", "rows"
IGNORED = (-100, 0, -1, 255)  # labels that are left out of a loss, by custom
TRIALS = 6
WINDOWS = 256  # places in a batch that are looked at for rows to try
FEW_ROWS = 3
SAME = 1e-9  # of a share
CLEARLY = 4.0  # so many times farther off than the best is wrong


class CannotTell(Exception):
    """What was measured is no number."""


class Precision:
    """How far whole and parts may lie apart, and what of that may be chance."""

    def __init__(self, within: float, chance: float) -> None:
        self.within, self.chance = within, chance


# Seen of losses that are sums or means of rows: 1e-16, 1e-7 to 1e-6, and 4e-3 to 6e-3 in bfloat16.
DOUBLE, SINGLE = Precision(1e-6, 1e-9), Precision(1e-4, 2e-5)
TENSOR_FLOAT, HALF = Precision(5e-3, 1e-4), Precision(2e-2, 2e-3)


def precision_of(torch: Any, parameters: list[Any], mixed: bool) -> Precision:
    kinds = {parameter.dtype for parameter in parameters}
    if mixed or kinds - {torch.float32, torch.float64}:  # half, or quantised: those compute in half
        return HALF
    if kinds == {torch.float64}:
        return DOUBLE
    on_gpu = any(parameter.is_cuda for parameter in parameters)
    coarse = torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32
    return TENSOR_FLOAT if on_gpu and coarse else SINGLE


def weighings(batch: dict[str, Any], rows: int, known: Optional[list[str]] = None) -> dict[str, Weighing]:
    found: dict[str, Weighing] = {ADDED_UP: None, ROWS: [1.0] * rows}
    if known is not None and len(known) == 1 and known[0] in found:  # then there is nothing to be read off a device
        return found
    for name, tensor in batch.items():
        if not tensor.dim() or tensor.dim() > 4 or tensor.is_complex():
            continue
        parts = {name: tensor}
        if tensor.dim() > 1 and tensor.shape[-1] > 1:
            parts[f"{name}, shifted"] = tensor[..., 1:]  # a token predicts the next one
        for part_name, part in parts.items():
            for way, amounts in _amounts(part_name, part.reshape(rows, -1), known):
                if sum(amounts) > 0:
                    found[way] = amounts
    return found


def _amounts(name: str, table: Any, known: Optional[list[str]]) -> Iterable[tuple[str, list[float]]]:
    if table.is_floating_point():  # weights of rows, a mask; not an image
        way = f"{name} summed"
        if (known is None or way in known) and table.shape[1] <= 1 << 16 and bool((table >= 0).all()):
            yield way, table.double().sum(1).tolist()
        return
    for value in IGNORED:
        way = f"{name} other than {value}"
        if known is None or way in known:
            yield way, (table != value).double().sum(1).tolist()


def share_of(weighing: Weighing, begin: int, end: int) -> float:
    return 1.0 if weighing is None else sum(weighing[begin:end]) / sum(weighing)


class Shares:
    """Of one model, for as long as it trains."""

    def __init__(self, known: Optional[list[str]] = None) -> None:
        self.known = known  # ways that held so far

    def way(self, batch: dict[str, Weighing]) -> Weighing:
        """For a batch on which it is settled."""
        return batch[self._left(batch)[0]]

    def is_settled(self, batch: dict[str, Weighing]) -> bool:
        return self.known is not None and len(_apart(batch, self._left(batch))) == 1

    def _left(self, batch: dict[str, Weighing]) -> list[str]:
        left = [name for name in (self.known if self.known is not None else batch) if name in batch]
        if not left:
            raise CannotSplit("its inputs are others than those it was tried with")
        return left

    def settle(
        self,
        batch: dict[str, Weighing],
        rows: int,
        few: int,
        measure: Measure,
        precision: Precision,
    ) -> None:
        """Or CannotSplit."""
        for _ in range(TRIALS):
            left = self._left(batch)
            off = tried(batch, _most_telling(batch, _apart(batch, left), rows, few), measure)
            best = min(off[name] for name in left)
            if best > precision.within:
                raise CannotSplit(
                    "the gradient of a batch is not that of its parts together: its loss is over the whole batch"
                )
            least = max(CLEARLY * best, precision.chance)
            self.known = sorted((name for name in left if off[name] <= least), key=lambda name: off[name] > best)
            if self.is_settled(batch):
                return
        raise CannotSplit("how its loss weighs the rows of a batch could not be told")


def tried(batch: dict[str, Weighing], rows: tuple[int, int, int], measure: Measure) -> dict[str, float]:
    """How far off each way is on these rows, as one piece and cut in the middle."""
    begin, middle, end = rows
    whole, one, other = measure(begin, end), measure(begin, middle), measure(middle, end)
    return {
        name: _distance(whole, one, other, within(way, begin, middle, begin, end), within(way, middle, end, begin, end))
        for name, way in batch.items()
    }


def within(weighing: Weighing, begin: int, end: int, first: int, last: int) -> float:
    """The share of some rows among those from `first` to `last`."""
    if weighing is None:
        return 1.0
    total = sum(weighing[first:last])
    return sum(weighing[begin:end]) / total if total else 0.0


def _apart(batch: dict[str, Weighing], names: list[str]) -> list[str]:
    """One of each kind: those whose shares are the same for every row of this batch are one kind."""
    kinds: list[tuple[str, Weighing]] = []
    for name in names:
        shares = _normal(batch[name])
        if not any(_same(shares, other) for _, other in kinds):
            kinds.append((name, shares))
    return [name for name, _ in kinds]


def _normal(weighing: Weighing) -> Weighing:
    if weighing is None:
        return None
    total = sum(weighing)
    return [amount / total for amount in weighing]


def _same(one: Weighing, other: Weighing) -> bool:
    if one is None or other is None:
        return one is other
    return all(abs(a - b) <= SAME * max(abs(a), abs(b)) for a, b in zip(one, other))


def _most_telling(batch: dict[str, Weighing], kinds: list[str], rows: int, few: int) -> tuple[int, int, int]:
    """Rows on which the ways that are left differ most. Both parts count by each of them, where there are such rows."""
    few = max(2, min(few, FEW_ROWS, rows))
    ways = [batch[name] for name in kinds]
    best, found = (-1.0, -1.0), (0, 1, few)
    for begin in range(0, min(rows - few, WINDOWS) + 1):
        for middle in range(begin + 1, begin + few):
            end = begin + few
            shares = [within(way, begin, middle, begin, end) for way in ways]
            sound = sum(way is None or 0.0 < share < 1.0 for way, share in zip(ways, shares))
            spread = sum(abs(a - b) for number, a in enumerate(shares) for b in shares[:number])
            if (sound, spread) > best:
                best, found = (float(sound), spread), (begin, middle, end)
    return found


def _distance(whole: Any, one: Any, other: Any, share: float, other_share: float) -> float:
    """Of the parts together from the whole, in units of their sizes."""
    one, other = one * share if share else one * 0.0, other * other_share if other_share else other * 0.0
    size = max(float(whole.norm()), float(one.norm()), float(other.norm()))
    off = float((whole - one - other).norm())
    if not math.isfinite(size + off):
        raise CannotTell
    return off / max(size, 1e-30)
