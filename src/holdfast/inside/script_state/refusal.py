"""Why a script cannot be left here, or not be gone on with."""

from __future__ import annotations


class CannotTake(Exception):
    """The state at this place cannot be taken exactly; another place may do."""


class RunByALibrary(CannotTake):
    """A part of the loop's state lies in variables of a library's."""


class CannotPutBack(Exception):
    """What was saved does not fit what this process has built."""


class BetweenPasses(CannotTake):
    """A graph waits for its backward pass: the state can be taken after that."""


class NotPrepared(Exception):
    """So many bytes are to be copied, and no memory for them was touched yet."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
