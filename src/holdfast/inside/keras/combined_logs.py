"""The logs of a batch, from those of its slices."""

from __future__ import annotations

from typing import Any


def combined_logs(logs: list[tuple[float, Any]], final: dict[str, Any], tf: Any) -> Any:
    """`logs` with the share of each slice; `final` are results of metrics, taken after the last one. Other numbers become
    the mean over the batch, and the rest is the last slice's."""
    last = logs[-1][1]
    if not isinstance(last, dict):
        return last
    combined = {}
    for key, value in last.items():
        if key in final:
            combined[key] = final[key]
        elif getattr(value, "shape", None) == () and value.dtype.is_floating:
            combined[key] = tf.add_n([log[key] * tf.cast(share, value.dtype) for share, log in logs])
        else:
            combined[key] = value
    return combined
