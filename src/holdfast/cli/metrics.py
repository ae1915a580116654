"""The text of `/metrics` for all runs of a state directory."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.cli.errors import UserError
from holdfast.cli.recording import any_alive
from holdfast.cli.run_store import all_runs

if TYPE_CHECKING:
    from holdfast.views.metrics import Metrics


def metrics_text(directory: str | None = None) -> bytes:
    """`directory` as of --dir. Called again, it reads only what is new; calls must not overlap."""
    return _metrics(directory).text(all_runs(directory))


@lru_cache(maxsize=4)
def _metrics(_directory: str | None) -> Metrics:
    try:
        from holdfast.views.metrics import Metrics  # noqa: PLC0415 - an extra
    except ImportError:
        raise UserError("metrics need prometheus-client; install it with: pip install 'holdfast[prometheus]'") from None
    return Metrics(any_alive)
