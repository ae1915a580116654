"""A model's training step on one batch, as Keras compiles it: anew, where what it reads while it traces has changed."""

from __future__ import annotations

from typing import Any, Callable

from .examination import as_tensors


def compiled_anew(model: Any, tf: Any) -> Callable[[Any], Any]:
    step = model.train_step
    if not model.run_eagerly:
        step = tf.function(step, reduce_retracing=True, jit_compile=model.jit_compile)
    return lambda batch: step(as_tensors(batch, tf))
