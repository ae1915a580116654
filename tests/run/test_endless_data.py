"""A script whose data has no end ends all the same: nothing of ours holds the data until Python is gone."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.workplace import Workplace

pytestmark = [
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow"),
    pytest.mark.timeout(300),
]

ENDLESS = """
    import keras, numpy as np, tensorflow as tf

    def stream():
        while True:
            yield np.zeros((4096, 4), "float32"), np.float32(0)

    signature = (tf.TensorSpec((4096, 4), tf.float32), tf.TensorSpec((), tf.float32))
    data = tf.data.Dataset.from_generator(stream, output_signature=signature).batch(8).prefetch(64)
    model = keras.Sequential([keras.Input((4096, 4)), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, steps_per_epoch=20, epochs=2, verbose=0)
    print("done", flush=True)
"""


def test_a_fit_over_an_endless_generator_lets_python_end(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(ENDLESS), timeout=200)
    assert (done.returncode, done.stdout) == (0, b"done\n")
