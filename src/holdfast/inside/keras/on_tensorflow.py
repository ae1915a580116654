"""State of a fit on TensorFlow: variables, random numbers, iterators."""

from __future__ import annotations

from typing import Any

from ..tensorflow import random_state, variable_values
from ..tensorflow import seams as tf_seams
from . import seams


class TensorFlowState:
    pulls_in_walk = False  # the batch that is due is pulled by what stands in for Keras's train function
    is_of_tf_data = True

    def __init__(self, tf: Any) -> None:
        self.tf = tf

    def why_not(self, model: Any, _adapter: Any = None) -> str:
        return "" if seams.on_one_device(model) else "checkpoints are not made under a distribution strategy yet"

    # -- random numbers

    def random_state(self) -> dict[str, Any]:
        return random_state.capture()

    def put_random_state(self, state: dict[str, Any]) -> None:
        random_state.restore(state)

    # -- variables

    def read(self, variable: Any) -> Any:
        return variable_values.read(seams.value_of(variable))

    def put(self, variable: Any, archive: Any, name: str, described: list[Any]) -> None:
        variable_values.put(self.tf, seams.value_of(variable), archive, name, described[1], described[2])

    # -- data

    def needs_iterator_state(self, adapter: Any) -> bool:
        """Arrays shuffled without a seed cannot be repeated."""
        shuffled = type(adapter).__name__ == "ArrayDataAdapter" and seams.is_shuffled(adapter)
        return shuffled and tf_seams.global_seed() is None

    def iterator_state(self, iterator: Any) -> Any:
        return tf_seams.state_of(iterator)

    def put_iterator_state(self, iterator: Any, state: Any) -> None:
        tf_seams.put_state(iterator, self.tf.constant(state))

    def pull(self, iterator: Any) -> None:
        iterator.get_next()

    def loader_state(self, _epoch_iterator: Any) -> Any:
        return None

    def put_loader_state(self, _epoch_iterator: Any, _state: Any) -> None:
        pass

    def epoch_iterator(self, model: Any, **given: Any) -> Any:
        made = seams.epoch_iterator_class_of("tensorflow")
        return made(
            distribute_strategy=model.distribute_strategy, steps_per_execution=model.steps_per_execution, **given
        )

    def build(self, model: Any, epoch_iterator: Any) -> None:
        trace = getattr(model.train_function, "prepare_for", None)
        if trace is not None:
            trace(seams.dataset_of(epoch_iterator))
