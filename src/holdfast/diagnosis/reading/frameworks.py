"""Which framework a log is of, so that the remedies fit."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.diagnosis.plain_text import Line

MARKS = {
    "tensorflow": ("tensorflow", "keras", "tf.data", "Epoch 1/", "ResourceExhaustedError", "ms/step", "of layer "),
    "torch": ("torch", "pytorch", "DataLoader", "NCCL", "lightning", "state_dict", "CUDA error:", "c10"),
    "jax": ("jaxlib", "jax/", "jax.", "XlaRuntimeError", "flax"),
}
MOST_LINES = 4000


def framework_in(lines: Sequence[Line]) -> str:
    """The one that is named most; empty where none is."""
    text = "\n".join(line.text for line in lines[-MOST_LINES:])
    counts = {name: sum(text.count(mark) for mark in marks) for name, marks in MARKS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""
