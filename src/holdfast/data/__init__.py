"""Data fit to train on. `open(path)` gives its batches in bounded memory; nothing is imported before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["open"]

if TYPE_CHECKING:
    from holdfast.data.stream.dataset import open_data as open


def __getattr__(name: str) -> Any:
    if name == "open":
        from holdfast.data.stream.dataset import open_data  # noqa: PLC0415

        return open_data
    raise AttributeError(f"module 'holdfast.data' has no attribute {name!r}")
