"""`holdfast.plan(…)` and `holdfast.fit_batch(…)`: the same measuring in the caller's own process, which is left as it was."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.inside.headroom import left
from holdfast.inside.held_memory import held_by_this_process
from holdfast.inside.plan.gauges import Card, Gauges
from holdfast.inside.plan.notes import Kept
from holdfast.inside.plan.rounds import Anatomy, Rounds
from holdfast.planning.measured import Measured, measured
from holdfast.planning.plan import Plan, Room
from holdfast.planning.plan import plan as planned
from holdfast.supervisor.budget import groups

SECONDS = 10.0
FIRST_ROWS = 2
ANY_SIZE = 1 << 30


def plan(
    model: Any,
    batch: Any,
    optimizer: Any = None,
    loss: Callable[..., Any] | None = None,
    *,
    size: int | None = None,
    memory: int | None = None,
    gpu_memory: int | None = None,
    seconds: float = SECONDS,
) -> Plan:
    """What training `model` takes: `batch` is one of the script's, such as `(inputs, targets)`; `size` the one to plan for.

    PyTorch: `optimizer` is a torch.optim one, `loss(outputs, targets)` a function. Keras: a compiled model brings its own.
    Runs a few steps on parts and multiples of the batch, then puts weights, optimizer and random numbers back.
    """
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module) and not hasattr(model, "train_on_batch"):
        found = _of_torch(model, batch, optimizer, loss, _wanted(size, memory, seconds))
    else:
        found = _of_keras(model, batch, _wanted(size, memory, seconds))
    return planned(found, _room(memory, gpu_memory), size)


def fit_batch(
    step: Callable[[Any], object],
    make_batch: Callable[[int], Any],
    *,
    memory: int | None = None,
    gpu_memory: int | None = None,
    at_most: int | None = None,
    seconds: float = SECONDS,
) -> int:
    """The largest batch that `step(make_batch(n))` can take with headroom, by a few sizes, ascending; none of them is one that
    would not fit. 0 where not even two rows do. `step` is really run: give it a copy where it must not train.
    """
    notes = Kept()
    rounds = Rounds(notes, _wanted(at_most, memory, seconds, ANY_SIZE), Gauges(_card()), Anatomy())
    rounds.begins(FIRST_ROWS)
    while not notes.is_done:
        step(make_batch(rounds.rows))
        rounds.updated()
        rounds.turn()
    found = measured(notes.lines)
    if found is None:
        return 0
    largest = planned(found, _room(memory, gpu_memory)).largest_batch
    return min(rows for rows in (largest, at_most, ANY_SIZE) if rows is not None)


def _wanted(size: int | None, memory: int | None, seconds: float, beyond: int | None = None) -> dict[str, Any]:
    found = left(groups())
    room = None if found is None else found.bytes + held_by_this_process()
    return {"batch": size, "seconds": seconds, "room_bytes": room, "limit_bytes": memory, "beyond": beyond}


def _room(memory: int | None, gpu_memory: int | None) -> Room:
    """What this process holds already is its own."""
    found, card = left(groups()), _card()
    here = None if found is None else found.bytes + held_by_this_process()
    return Room(memory or here, gpu_memory or (card.room_bytes() if card is not None else None))


def _card() -> Card | None:
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        from holdfast.inside.torch.plan_anatomy import card_gauge  # noqa: PLC0415

        return card_gauge(torch)
    tf: Any = sys.modules.get("tensorflow")
    if tf is not None and tf.config.list_physical_devices("GPU"):
        from holdfast.inside.tensorflow.plan import card_gauge as of_tensorflow  # noqa: PLC0415

        return of_tensorflow(tf)
    return None


# -- PyTorch


def _of_torch(model: Any, batch: Any, optimizer: Any, loss: Any, wanted: dict[str, Any]) -> Measured:
    torch: Any = sys.modules["torch"]
    from holdfast.inside.torch.plan import resized  # noqa: PLC0415
    from holdfast.inside.torch.plan_anatomy import TorchAnatomy, card_gauge  # noqa: PLC0415
    from holdfast.inside.torch.tensor_nests import rows_of, tensors_of  # noqa: PLC0415

    notes, anatomy, rows = Kept(), TorchAnatomy(torch), rows_of(batch, torch)
    rounds = Rounds(notes, wanted, Gauges(card_gauge(torch)), anatomy)
    with anatomy.following(), _torch_state(torch, model, optimizer):
        rounds.begins(rows)
        while not notes.is_done:
            given = resized(batch, rows, rounds.rows, torch)
            anatomy.batch, anatomy.batch_bytes = given, sum(tensor.nbytes for tensor in tensors_of(given, torch))
            inputs, *targets = given if isinstance(given, (tuple, list)) else (given,)
            outputs = model(inputs)
            value = (
                loss(outputs, *targets)
                if loss is not None
                else sum(t.float().sum() for t in tensors_of(outputs, torch))
            )
            anatomy.backward_begins()
            value.backward()
            if optimizer is not None:
                anatomy.before_update(optimizer)
                optimizer.step()
                anatomy.after_update()
                optimizer.zero_grad()
            else:
                model.zero_grad()
            rounds.updated()
            rounds.turn()
    return _found(notes)


@contextlib.contextmanager
def _torch_state(torch: Any, model: Any, optimizer: Any) -> Iterator[None]:
    """Weights, statistics, gradients, the optimizer's state and random numbers, as they were."""
    import copy  # noqa: PLC0415

    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    gradients = {parameter: parameter.grad for parameter in model.parameters()}
    state = copy.deepcopy(optimizer.state_dict()) if optimizer is not None else None
    numbers, training = torch.get_rng_state(), model.training
    model.train()
    try:
        yield
    finally:
        model.load_state_dict(weights)
        model.train(training)
        for parameter, gradient in gradients.items():
            parameter.grad = gradient
        if optimizer is not None:
            optimizer.load_state_dict(state)
        torch.set_rng_state(numbers)


# -- Keras


def _of_keras(model: Any, batch: Any, wanted: dict[str, Any]) -> Measured:
    tf: Any = sys.modules.get("tensorflow")
    if tf is None or not hasattr(model, "make_train_function"):
        raise TypeError("plan takes a PyTorch module, or a compiled Keras model on TensorFlow")
    from holdfast.inside.keras.batch_slices import rows_of  # noqa: PLC0415
    from holdfast.inside.keras.plan_anatomy import KerasAnatomy  # noqa: PLC0415
    from holdfast.inside.keras.plan_batches import resized  # noqa: PLC0415
    from holdfast.inside.tensorflow.plan import card_gauge  # noqa: PLC0415

    data = tf.nest.map_structure(tf.convert_to_tensor, tuple(batch) if isinstance(batch, list) else batch)
    notes, anatomy, rows = Kept(), KerasAnatomy(tf, model), rows_of(data, tf)
    rounds = Rounds(notes, wanted, Gauges(card_gauge(tf)), anatomy)
    _build(model, data)
    if model.train_function is None:
        model.make_train_function()
    with _keras_state(model):
        rounds.begins(rows)
        while not notes.is_done:
            given = resized(data, rows, rounds.rows, tf)
            anatomy.given(given, data)
            model.train_function(iter([given]))
            rounds.updated()
            rounds.turn()
    return _found(notes)


def _build(model: Any, data: Any) -> None:
    """What the first step would make, so that there is something to put back."""
    if not model.built:
        model(data[0] if isinstance(data, tuple) else data, training=False)
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


@contextlib.contextmanager
def _keras_state(model: Any) -> Iterator[None]:
    """Weights, statistics, seeds and the optimizer's state, as they were; metrics begin anew, as in each `fit`."""
    kept = [(variable, variable.numpy().copy()) for variable in (*model.variables, *model.optimizer.variables)]
    try:
        yield
    finally:
        for variable, value in kept:
            variable.assign(value)
        model.reset_metrics()


def _found(notes: Kept) -> Measured:
    found = measured(notes.lines)
    if found is None:
        raise RuntimeError("no step could be measured")
    return found
