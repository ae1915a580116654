"""Sketches of gradients are as far apart as the gradients, and those of parts add up."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

pytestmark = [
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow"),
    pytest.mark.timeout(120),
]
SHAPE = (300, 700)  # not a multiple of the sketch's width


def sketched(values: Any) -> Any:
    import tensorflow as tf

    from holdfast.inside.keras.gradient_sketch import sketch

    return sketch(tf.constant(values), int(np.prod(np.shape(values))), 1.0, tf).numpy()


def apart(one: Any, other: Any) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(one))


def cancelling(random: Any) -> Any:
    """As behind a ReLU: every column has the sign of its unit, so that the sum of all is a small part of what is added."""
    columns = random.normal(size=SHAPE[1])
    return (random.random(SHAPE) * (columns - columns.mean())).astype("float32")


def test_rounding_stays_as_small_as_it_is() -> None:
    random = np.random.default_rng(0)
    exact = cancelling(random)
    rounded = (exact * (1 + 1e-3 * random.normal(size=SHAPE[1]))).astype("float32")
    assert apart(exact.ravel(), rounded.ravel()) < 2e-3
    assert apart(sketched(exact), sketched(rounded)) < 3e-3
    assert abs(exact.sum() - rounded.sum()) > 2e-2 * abs(exact.sum()), "what plain sums would have made of it"


def test_another_gradient_is_seen() -> None:
    random = np.random.default_rng(1)
    one, other = cancelling(random), cancelling(random)
    assert apart(sketched(one), sketched(other)) > 0.5
    assert apart(sketched(one), sketched(1.1 * one)) == pytest.approx(0.1, abs=1e-4)


def test_parts_add_up_to_the_whole_also_as_rows_of_a_table() -> None:
    import tensorflow as tf

    from holdfast.inside.keras.gradient_sketch import sketch

    random = np.random.default_rng(2)
    one, other = cancelling(random), cancelling(random)
    assert apart(sketched(one + other), sketched(one) + sketched(other)) < 1e-5
    rows, where = random.normal(size=(40, 16)).astype("float32"), random.integers(0, 500, 40)

    def of_rows(begin: int, end: int) -> Any:
        return sketch(tf.IndexedSlices(rows[begin:end], where[begin:end]), 500 * 16, 1.0, tf).numpy()

    assert apart(of_rows(0, 40), of_rows(0, 25) + of_rows(25, 40)) < 1e-5


def test_the_default_rounding_is_put_back_after_a_check() -> None:
    import tensorflow as tf

    from holdfast.inside.keras.gradient_check import without_tf32

    config = tf.config.experimental
    before = config.tensor_float_32_execution_enabled()
    try:
        for is_on in (True, False):
            config.enable_tensor_float_32_execution(is_on)
            with pytest.raises(ValueError, match="of the check"), without_tf32():
                assert not config.tensor_float_32_execution_enabled()
                raise ValueError("of the check")
            assert config.tensor_float_32_execution_enabled() is is_on
    finally:
        config.enable_tensor_float_32_execution(before)
