"""What model, loss, optimizer and first batch show by themselves, told once after the first step."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ...numerics.events import Loss, Optimizer, Setup, Values, Weights
from ...numerics.plain_numbers import told
from ...tensorflow.numerics.array_facts import moments, of_input, of_output, of_targets
from ...tensorflow.numerics.finiteness import array_of, is_float
from .. import seams
from .examination import leaves_of
from .heads import heads_of
from .incidents import half_of
from .last_layer import activation_of, last_layer
from .loss_kinds import loss_facts
from .probe import Probed
from .state import CLIPS, optimizer_of, rate_of

NAMES = 10
RECURRENT = ("LSTM", "GRU", "RNN")
BETWEEN = ("Flatten", "Dropout", "Reshape", "Normalization", "Rescaling")  # layers that leave a linear model linear


def setup_facts(model: Any, batch: Any, probed: Optional[Probed], first: Dict[int, Any], step: int, tf: Any) -> Setup:
    """`first`: by variable (of TensorFlow's) its value before the first step."""
    kinds = [type(layer).__name__ for layer in seams.layers_of(model, include_self=False)]
    found: Setup = {
        "step": step,
        "model": getattr(model, "kind_name", type(model).__name__),
        "loss": loss_facts(model),
        "optimizer": optimizer_facts(model),
        "weights": weight_facts(model, first),
        "recurrent": any(kind.endswith(RECURRENT) for kind in kinds),
        "normalised": any(kind.endswith("Normalization") and kind != "Normalization" for kind in kinds),
        "half": half_of(model),
        "linear": linear_layers(model),
        "inputs": [],
    }
    for part, leaf in leaves_of(batch, tf):
        if not isinstance(leaf.tensor, tf.Tensor) or leaf.tensor.dtype == tf.string:
            continue
        if part == "x":
            found["inputs"].append(of_input(array_of(leaf.tensor), leaf.name))
        elif leaf.is_target and "targets" not in found:
            found["targets"] = of_targets(array_of(leaf.tensor))
    if probed is not None:
        _add_probed(found, probed, model, tf)
    return found


def _add_probed(found: Setup, probed: Probed, model: Any, tf: Any) -> None:
    given = next((one for one in tf.nest.flatten(probed.given) if one is not None), None)
    if probed.first_layer is not None:
        found["first_layer"] = {"kind": type(probed.first_layer).__name__}
    if probed.normalised_alone:
        found["normalised_alone"] = probed.normalised_alone[:NAMES]
    found["heads"] = heads_of(model, probed.given, probed.parts[1])
    if given is None or not hasattr(given, "shape"):
        return
    found["output"] = output_facts(given)
    if probed.last_layer is not None:
        found["last"] = last_layer(probed.last_layer, given)
    found["linear"] = found["linear"] or probed.ops.linear_layers(given)[:NAMES]
    rows = probed.ops.spread_over(given)
    if rows and not found["loss"].get("family"):
        spread: Loss = {"name": "squared difference", "family": "regression", "compared": [rows, rows]}
        found["loss"] = {**found["loss"], **spread}


def output_facts(given: Any) -> Values:
    return of_output(array_of(given))


def optimizer_facts(model: Any) -> Optimizer:
    optimizer = optimizer_of(model)
    if optimizer is None:
        return {}
    given = {id(one) for one in seams.trained_by(optimizer)}
    schedule = seams.schedule_of(optimizer)
    missing = [str(one.path) for one in model.trainable_variables if id(one) not in given]
    found: Optimizer = {
        "name": type(optimizer).__name__,
        "rate": told(rate_of(model)),
        "weight_decay": told(_number(optimizer, "weight_decay")),
        "epsilon": told(_number(optimizer, "epsilon")),
        "momentum": told(_number(optimizer, "momentum")),
        "clips": any(getattr(optimizer, name, None) for name in CLIPS),
        "parameters": sum(_size(one) for one in seams.trained_by(optimizer)),
        "not_given": missing[:NAMES],
    }
    if schedule is not None:
        found["schedule"] = type(schedule).__name__
    return found


def _number(owner: Any, name: str) -> Optional[float]:
    found = getattr(owner, name, None)
    return float(found) if isinstance(found, (int, float)) else None


def weight_facts(model: Any, first: Dict[int, Any]) -> Weights:
    trainable = model.trainable_variables
    of_models = {id(one) for one in trainable}
    frozen = [one for one in _weights_of(model) if id(one) not in of_models]
    found: Weights = {
        "trainable": sum(map(_size, trainable)),
        "frozen": sum(map(_size, frozen)),
        "frozen_names": [str(one.path) for one in frozen[:NAMES]],
        "zero": [],
        "constant": [],
    }
    widest = -1.0
    for variable in trainable:
        value = first.get(id(seams.value_or_itself(variable)))
        if value is None or not is_float(value) or len(variable.shape) < 2 or str(variable.path).endswith("bias"):
            continue  # a GRU's bias has two axes, and begins at zero
        array = array_of(value)
        low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 1.0)
        if low == high:
            found["zero" if low == 0.0 else "constant"].append(str(variable.path))
        std = moments(array).std
        if std > widest:
            widest = std
            found["largest"] = {"name": str(variable.path), "std": told(std), "shape": [int(n) for n in variable.shape]}
    for key in ("zero", "constant"):
        del found[key][NAMES:]
    return found


def _weights_of(model: Any) -> List[Any]:
    """Kernels and biases, frozen or not: not the statistics of a normalisation, nor seeds."""
    found = []
    for layer in seams.layers_of(model):
        if not layer.trainable:
            found += [one for one in layer.weights if "moving_" not in str(one.path)]
    seen: Dict[int, Any] = {id(one): one for one in found}
    return list(seen.values())


def linear_layers(model: Any) -> List[str]:
    """Of a model of layers alone, where none but its last has an activation, and none is narrower than both ends."""
    layers = [one for one in getattr(model, "layers", ()) if type(one).__name__ != "InputLayer"]
    operations = getattr(model, "operations", layers)
    if type(model).__name__ not in ("Sequential", "Functional") or any(
        type(one).__name__ not in ("InputLayer", "Dense", *BETWEEN) for one in operations
    ):
        return []
    dense = [one for one in layers if type(one).__name__ == "Dense"]
    if len(dense) < 2 or any(activation_of(one) != "linear" for one in dense[:-1]):
        return []
    ends = min(int(dense[0].kernel.shape[0]), int(dense[-1].units))
    return [] if min(int(one.units) for one in dense[:-1]) < ends else [str(one.name) for one in dense][:NAMES]


def _size(variable: Any) -> int:
    size = 1
    for length in variable.shape:
        size *= int(length or 1)
    return size
