"""The user's own training step on some rows of the present batch, beside the training: its gradients before clipping, what
its layers and the model give, and nothing of it stays."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Tuple

from ...numerics.repeatable import methods_of, repeatable
from ...numerics.room import rows_beside
from ...telemetry import Recorder
from ...tensorflow.numerics.examination import eagerly
from ...tensorflow.numerics.forward_ops import ForwardOps
from ...tensorflow.numerics.untouched import untouched
from .. import seams
from ..batch_slices import cut, rows_of
from ..undo import optimizers_of, replaced, replaced_here
from .examination import as_tensors
from .left_out import Noted

ROWS, FEWEST, BYTES = 64, 4, 4 << 20  # rows of a probe: so many at most, and not many more than so many bytes


class Gradient(NamedTuple):
    variable: Any
    value: Any  # None where the loss does not depend on it


class Probed:
    """What one step gave. `on_layer` is told each layer's result as it comes; results are not kept."""

    def __init__(self) -> None:
        self.gradients: List[Gradient] = []
        self.scale = 1.0  # of the loss, in half precision
        self.model: Any = None  # or the outermost layer that was called first
        self.loss: Any = None  # the object of Keras's that was called, if any
        self.given: Any = None  # by the model: what goes into the loss
        self.last_layer: Any = None  # the layer that gave it
        self.first_layer: Any = None
        self.parts: Tuple[Any, Any, Any] = (None, None, None)  # x, y, sample_weight
        self.latest: Any = None  # the innermost layer that gave a result last
        self.ops = ForwardOps()  # of the first look
        self.returned: Any = None  # by the step
        self.normalised_alone: List[str] = []  # batch normalisations that were given one value of each feature


OnLayer = Callable[[Any, Any], None]


def may_probe(model: Any) -> bool:
    """Functions of the user's own are run once more than he asked for: not where that shows."""
    functions: List[Any] = [getattr(model, "loss", None)]
    for owner in seams.layers_of(model):
        functions += methods_of(type(owner))
    loss = getattr(model, "loss", None)
    functions += [getattr(loss, "fn", None), *(vars(type(loss)).values() if loss is not None else ())]
    return repeatable(functions)


def some_rows(batch: Any, tf: Any, recorder: Recorder) -> Any:
    """None where there is no memory to run enough of them."""
    data = as_tensors(batch, tf)
    rows = rows_of(data, tf)
    leaf = next(one for one in tf.nest.flatten(data) if one is not None)
    row_bytes = max(1, leaf.dtype.size * int(tf.size(leaf)) // max(1, rows))
    most = rows_beside(recorder, rows)
    if most < min(rows, FEWEST):
        return None
    return cut(data, 0, min(most, ROWS, max(FEWEST, BYTES // row_bytes)), tf)


def probed(
    model: Any,
    batch: Any,
    tf: Any,
    recorder: Recorder,
    on_layer: Optional[OnLayer] = None,
    noted: Optional[Noted] = None,
) -> Optional[Probed]:
    """None where there is no memory for it."""
    data = some_rows(batch, tf, recorder)
    if data is None:
        return None
    found = Probed()
    found.model, found.parts = model, seams.unpack(data)
    return probed_step(lambda: model.train_step(data), optimizers_of(model), found, tf, on_layer, noted)


def probed_step(
    step: Callable[[], Any], optimizers: Iterable[Any], found: Probed, tf: Any, on_layer: Optional[OnLayer] = None,
    noted: Optional[Noted] = None,
) -> Probed:  # fmt: skip
    layer_class, loss_class = seams.layer_class(), seams.losses().Loss
    with contextlib.ExitStack() as stack:
        stack.enter_context(untouched())
        stack.enter_context(eagerly(tf))
        if noted is not None:
            stack.enter_context(noted.at_the_tapes())
            stack.enter_context(found.ops.recording())
        for optimizer in optimizers:
            stack.enter_context(replaced_here(optimizer, "apply", _catching(optimizer, found)))
        stack.enter_context(replaced(loss_class, "__call__", _noting_loss(loss_class.__call__, found)))
        call = _following(layer_class.__call__, noted) if noted is not None else layer_class.__call__
        stack.enter_context(replaced(layer_class, "__call__", _noting(call, found, on_layer or _nothing)))
        found.returned = step()
    return found


def _noting_loss(call: Callable[..., Any], found: Probed) -> Callable[..., Any]:
    """In a loop of the user's own: which loss it is, and what it is given."""

    @functools.wraps(call)
    def noted(loss: Any, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        if found.loss is None:
            found.loss = loss
            if found.parts[1] is None:
                found.parts = (None, y_true, None)
                found.given, found.last_layer = y_pred, found.latest  # a loop may call several models in turn
        return call(loss, y_true, y_pred, *args, **kwargs)

    return noted


def _nothing(_layer: Any, _result: Any) -> None:
    return None


def _catching(optimizer: Any, found: Probed) -> Callable[..., None]:
    def apply(grads: Any, trainable_variables: Any = None) -> None:
        variables = list(trainable_variables) if trainable_variables is not None else seams.trained_by(optimizer)
        scale = getattr(optimizer, "dynamic_scale", None)
        if scale is not None:
            found.scale = float(scale.numpy())
        found.gradients += [Gradient(variable, value) for value, variable in zip(list(grads), variables)]

    return apply


def _has_one_value(result: Any) -> bool:
    """Of each feature: one row, and no places within it."""
    shape = tuple(getattr(result, "shape", None) or ())
    return len(shape) > 1 and all(size == 1 for size in shape[:-1])


def _following(call: Callable[..., Any], noted: Noted) -> Callable[..., Any]:
    @functools.wraps(call)
    def followed(layer: Any, *args: Any, **kwargs: Any) -> Any:
        with noted.during(layer, [args, kwargs]) as result:
            result.append(call(layer, *args, **kwargs))
        return result[0]

    return followed


def _noting(call: Callable[..., Any], found: Probed, on_layer: OnLayer) -> Callable[..., Any]:
    @functools.wraps(call)
    def noted(layer: Any, *args: Any, **kwargs: Any) -> Any:
        if found.model is None:
            found.model = layer
        model = found.model
        if found.first_layer is None and layer is not model and not list(getattr(layer, "layers", ())):
            found.first_layer = layer
        with found.ops.within(layer):
            result = call(layer, *args, **kwargs)
        if type(layer).__name__ == "BatchNormalization" and _has_one_value(result):
            found.normalised_alone.append(str(layer.name))
        if layer is model:
            if found.given is None:
                found.given, found.last_layer = result, found.latest
        else:
            if not list(getattr(layer, "layers", ())) and type(layer).__name__ != "InputLayer":
                found.latest = layer
            on_layer(layer, result)
        return result

    return noted
