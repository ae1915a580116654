"""The state of a training step as it was between two steps: its variables and what draws at random."""

from __future__ import annotations

from typing import Any, List, Sequence

from .. import random_state, variable_values


class Snapshot:
    """On the CPU the variables' own buffers, which TensorFlow copies when it writes to them next; on a GPU copies in the
    host's memory."""

    __slots__ = ("_random", "_variables", "step", "values")

    def __init__(self, variables: Sequence[Any], step: int) -> None:
        self._variables = variables
        self.values: List[Any] = [variable_values.read(variable) for variable in variables]
        self._random = random_state.capture()
        self.step = step  # steps done by then

    def put_back(self) -> None:
        for variable, value in zip(self._variables, self.values):
            variable.assign(value)
        random_state.restore(self._random)

    def again(self, number: int) -> None:
        """Reads one variable anew."""
        self.values[number] = variable_values.read(self._variables[number])


def bytes_of(variables: Sequence[Any]) -> int:
    return sum(variable_values.nbytes_of([int(size) for size in one.shape], str(one.dtype.name)) for one in variables)
