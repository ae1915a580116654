"""Why a script cannot be left here, or not be gone on with."""

from __future__ import annotations


class CannotTake(Exception):
    """The state at this place cannot be taken exactly; another place may do."""


class CannotPutBack(Exception):
    """What was saved does not fit what this process has built."""
