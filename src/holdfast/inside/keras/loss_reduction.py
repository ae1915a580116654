"""Keras's reduction of the values of one loss, put right for a part of a batch. The same for every backend."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple


class Reduced(NamedTuple):
    """What one loss was reduced from."""

    values: Any
    sample_weight: Any
    mask: Any
    reduction: Any
    dtype: Any

    def adds_up(self, sums_rows: bool) -> bool:
        """Instead of taking a mean. `sums_rows`: so does a loss of the user's own, which comes as one number."""
        return self.reduction in (None, "none", "sum") if len(self.values.shape) else sums_rows


def reducing(original: Callable[..., Any], put_right: Callable[[Any, Reduced], Any]) -> Callable[..., Any]:
    """In place of `reduce_weighted_values`."""

    def reduce(
        values: Any,
        sample_weight: Any = None,
        mask: Any = None,
        reduction: Any = "sum_over_batch_size",
        dtype: Any = None,
    ) -> Any:
        loss = original(values, sample_weight=sample_weight, mask=mask, reduction=reduction, dtype=dtype)
        return put_right(loss, Reduced(values, sample_weight, mask, reduction, dtype))

    return reduce
