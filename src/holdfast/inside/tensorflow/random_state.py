"""All of TensorFlow's, NumPy's and Python's global random state, as values that can be kept and put back."""

from __future__ import annotations

import functools
import random
from typing import Any, Dict

from .. import randomness
from . import seams


def capture() -> Dict[str, Any]:
    state = of_data()
    generator = seams.global_generator()
    state["generator"] = None if generator is None else generator.state.numpy()
    return state


def of_data() -> Dict[str, Any]:
    """Without what may lie on a device."""
    state = randomness.capture()
    drawing = seams.python_random()
    state["tensorflow"] = None if drawing is None else drawing.getstate()
    state["shuffles"] = _shuffles.getstate()
    return state


def restore(state: Dict[str, Any]) -> None:
    if state.get("generator") is not None:
        (seams.global_generator() or seams.make_global_generator()).state.assign(state["generator"])
    drawing = seams.python_random()
    if state.get("tensorflow") is not None and drawing is not None:
        drawing.setstate(state["tensorflow"])
    if "shuffles" in state:
        _shuffles.setstate(state["shuffles"])
    randomness.restore(state)


_shuffles = random.Random(0)  # seeds of shuffles that were given none, in a script that sets none


def shuffle_alike(seed: int) -> None:
    """A shuffle of tf.data without any seed gets one of the run's own: as random, and the same in the next attempt.

    Only these: a global seed would make Keras shuffle arrays the same way in every epoch (measured, Keras 3.15).
    """
    seeding, config = seams.module("data.util.random_seed"), seams.module("framework.config")
    context = seams.context_module()
    get_seed = seeding.get_seed
    _shuffles.seed(seed)

    @functools.wraps(get_seed)
    def given(wished: Any) -> Any:
        unseeded = wished is None and context.executing_eagerly() and context.global_seed() is None
        if unseeded and not config.is_op_determinism_enabled():
            wished = _shuffles.randrange(1, 2**31 - 1)
        return get_seed(wished)

    seeding.get_seed = given
