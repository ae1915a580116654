"""Loss, learning rate and gradient norm: looked at twice a second, never in the step's way."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Optional

from ..never_raise import guarded
from ..telemetry import READ_EVERY_S, Recorder, now
from ..torch import deferred_reads
from . import seams

LOOK_EVERY_S = 0.1
PARAMETERS = 20_000_000  # of a model whose gradient norm is read: 80 MB to go through
SPARE = 500  # a reading that took 5 ms is repeated after 2.5 s: 0.2 % of the run
LONGEST_S = 30.0
GROUPS = 16  # layers reported one by one: the first and the last ones of a deep model
NAME_BYTES = 17  # of a layer, so that `gradient_norm[…]` fits the 32 of a slot


class Values:
    """The optimizer is asked for by a function that holds it weakly: a model that its owner drops must go."""

    def __init__(self, recorder: Recorder, tf: Any, backend: str = "tensorflow") -> None:
        self._recorder = recorder
        self._tf = tf
        self._readable = backend != "jax"  # where Keras empties its variables while `fit` runs
        self._optimizer: Callable[[], Any] = lambda: None
        self._offer_at = 0.0
        self._rate_at = 0.0
        self._norms_at = 0.0
        self._said: set[str] = set()
        self.measured = False  # the gradient's own norm is told by samples of the step: not the running mean's
        recorder.on_look(self._look)

    def offer(self, logs: Any, optimizer: Callable[[], Any]) -> None:
        self._optimizer = optimizer
        moment = now()
        if moment < self._offer_at:
            return
        self._offer_at = moment + LOOK_EVERY_S
        if self._recorder.wants("loss"):
            # Keras's logs are means over the epoch so far; this is the number its progress bar shows.
            loss = logs.get("loss") if isinstance(logs, dict) else None
            read = reading(loss)
            if read is not None:
                self._recorder.offer("loss", read)

    @guarded
    def _look(self, moment: float) -> None:
        """Between two steps: what the optimizer holds is of the step that has just ended."""
        optimizer = self._optimizer() if self._readable else None
        if optimizer is None or moment < self._rate_at:
            return
        self._rate_at = moment + READ_EVERY_S
        rate = optimizer.learning_rate  # a schedule's: its value at this iteration
        mirrored = self._tf is not None and hasattr(rate, "numpy")  # one of a strategy's variables is no number
        read = reading(rate.numpy() if mirrored else getattr(rate, "value", rate))
        if read is not None:
            self._recorder.offer("learning_rate", read)
        if self._tf is None or self.measured or moment < self._norms_at:
            return
        self._norms_at = moment + LONGEST_S
        norms, reason = gradient_norms(optimizer, self._tf)
        if reason and reason not in self._said:
            self._said.add(reason)
            self._recorder.event("train.gradient_norm_missing", reason=reason)
        for group, norm in norms.items():
            self._write(f"gradient_norm{group}", norm)
        if norms:
            self._norms_at = moment + min(LONGEST_S, max(READ_EVERY_S, (now() - moment) * SPARE))

    def _write(self, name: str, value: float) -> None:
        self._recorder.writer.value(time.time(), self._recorder.steps, name, value)


def reading(value: Any) -> Optional[deferred_reads.Read]:
    """How to read a number later. On a GPU of PyTorch's the copy begins now, so that reading it waits for nothing."""
    torch = sys.modules.get("torch")
    if value is None:
        return None
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return deferred_reads.reading(torch, value)
    return lambda: float(value)


def gradient_norms(optimizer: Any, tf: Any) -> tuple[dict[str, float], str]:
    """The norm of the gradient's running mean, which the optimizer keeps anyway, over all and by layer; or why not."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    variables = seams.trained_by(optimizer)
    slots, scale = _first_moments(optimizer)
    if not slots or len(slots) != len(variables):
        return {}, f"{type(optimizer).__name__} keeps no running mean of the gradient"
    if sum(_size(slot) for slot in slots) > PARAMETERS:
        return {}, f"more than {PARAMETERS} parameters"
    groups = [short(name) for name in layers_of_variables(variables)]
    with tf.init_scope():  # outside any tape the user has open
        squares = tf.stack([_square(slot, tf) for slot in slots]).numpy().tolist()
    sums: dict[str, float] = {}
    for group, square in zip(groups, squares):
        sums[group] = sums.get(group, 0.0) + square
    names = list(sums)
    if len(names) > GROUPS:
        names = names[: GROUPS // 2] + names[-GROUPS // 2 :]
    norms = {f"[{name}]": scale * sums[name] ** 0.5 for name in names}
    norms[""] = scale * sum(squares) ** 0.5
    return norms, ""


def _first_moments(optimizer: Any) -> tuple[list[Any], float]:
    """The slots, and what their norm is to be multiplied with to be a gradient's."""
    steps = max(1, int(optimizer.iterations.numpy()))
    beta = getattr(optimizer, "beta_1", None)
    means = seams.running_means(optimizer)
    if beta is not None and means:
        if type(optimizer).__name__ == "Lion":
            beta = optimizer.beta_2
        return list(means), 1.0 / (1.0 - float(beta) ** steps)
    momentum = getattr(optimizer, "momentum", 0.0)
    velocities = getattr(optimizer, "momentums", None)
    rate = float(optimizer.learning_rate.numpy()) if velocities and momentum else 0.0
    if rate:
        return list(velocities or ()), (1.0 - float(momentum)) / (rate * (1.0 - float(momentum) ** steps))
    return [], 1.0


def _size(slot: Any) -> int:
    size = 1
    for dimension in slot.shape:
        size *= int(dimension or 1)
    return size


def _square(slot: Any, tf: Any) -> Any:
    value = tf.cast(tf.convert_to_tensor(slot.value), tf.float32)
    return tf.reduce_sum(tf.square(value))


def layers_of_variables(variables: list[Any]) -> list[str]:
    """The top-level layer of each; a subclassed model's own name, which stands before them all, says nothing."""
    paths = [str(getattr(variable, "path", variable.name)).split("/") for variable in variables]
    while paths and all(len(path) > 2 and path[0] == paths[0][0] for path in paths):
        paths = [path[1:] for path in paths]
    return [path[0] for path in paths]


def short(name: str) -> str:
    return name.encode("utf-8", "replace")[:NAME_BYTES].decode("utf-8", "ignore")
