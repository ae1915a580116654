"""Where something non-finite came from: the step is run again in checking mode, from the same weights."""

from __future__ import annotations

import contextlib
import functools
import inspect
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ...never_raise import outcome
from ...numerics import events
from ...numerics.events import BadInput, NonFinite
from ...numerics.user_lines import frames_of_user
from .. import among_ranks, random_state
from ..batch_function import TRIAL, BatchFunction
from ..module_attributes import attributes_put_back
from ..outermost_call import Call, running_again
from ..step_undo import StepUndo, aside, buffers_put_back
from ..tensor_nests import named_leaves, tensors_of
from . import backward_ops, graph_values
from .checked_ops import CheckedOps, Made
from .finite import bad_input, first_bad, is_float
from .loss_again import LossAgain
from .source_rows import add_sources

TARGET_NAMES = ("label", "target", "y_true", "y_train", "ground_truth")
FRAMES = 3  # of the user's, from the backward call outwards, whose variables name a tensor
NAMED = 400  # variables of a frame that are looked at


@dataclass
class Scene:
    """What is at hand when something non-finite is noticed: before the update, so that the weights are those it began with."""

    torch: Any
    loss: Any
    frame: Optional[FrameType]
    calls: List[Call]
    loader: Any = None  # that feeds the training, where one does
    has_room: bool = True  # to run the step once more
    names: Dict[int, str] = field(default_factory=dict)  # of tensors, by id: the user's variables

    def __post_init__(self) -> None:
        self.calls = [call for call in self.calls if isinstance(call[0], BatchFunction) or _size(call[0])]  # no losses
        self.frames = [frame for frame, _ in zip(frames_of_user(self.frame), range(FRAMES))]
        for frame in self.frames:
            nested = sorted(_named(frame, self.torch), key=lambda found: "." in found[0])  # `x` rather than `batch.0`
            for name, leaf in nested:
                self.names.setdefault(id(leaf), name)

    def models(self) -> List[Any]:
        found: Dict[int, Any] = {}
        for what, _, _ in self.calls:
            model = what.model if isinstance(what, BatchFunction) else what
            found[id(model)] = model
        return list(found.values())

    def inputs(self) -> List[Tuple[str, Any]]:
        """Tensors without a graph, with a name: what modules were given, then the user's variables."""
        found: Dict[int, Tuple[str, Any]] = {}
        for name, value in [*self.given(), *self.tensors()]:
            if is_float(self.torch, value) and value.grad_fn is None and not value.requires_grad:
                found.setdefault(id(value), (self.names.get(id(value), name), value))
        return list(found.values())

    def given(self) -> Iterator[Tuple[str, Any]]:
        for what, args, kwargs in self.calls:
            forward = what.whole if isinstance(what, BatchFunction) else what.forward
            named = _parameter_names(forward)
            for position, value in enumerate(args):
                name = named[position] if position < len(named) else f"argument {position}"
                yield from _leaves(name, value, self.torch)
            for name, value in kwargs.items():
                yield from _leaves(name, value, self.torch)

    def variables(self) -> List[Any]:
        return [value for frame in self.frames for value in list(frame.f_locals.values())[:NAMED]]

    def tensors(self) -> Iterator[Tuple[str, Any]]:
        """The user's variables."""
        for frame in self.frames:
            yield from _named(frame, self.torch)


def _named(frame: FrameType, torch: Any) -> Iterator[Tuple[str, Any]]:
    for name, value in list(frame.f_locals.items())[:NAMED]:
        yield from _leaves(name, value, torch)


def _leaves(name: str, value: Any, torch: Any) -> Iterator[Tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (tuple, list, dict)) and len(value) <= NAMED:
        for path, leaf in named_leaves(value, name)[:NAMED]:
            if isinstance(leaf, torch.Tensor):
                yield path, leaf


def _parameter_names(function: Any) -> List[str]:
    found, _ = outcome(inspect.signature, function)
    return [] if found is None else list(found.parameters)


# -- the run in checking mode


def again(scene: Scene) -> Tuple[Optional[Callable[[], Any]], str]:
    """How the loss is computed once more, and in which words that is told; None where it cannot be."""
    torch = scene.torch
    for what, args, kwargs in scene.calls:
        if isinstance(what, BatchFunction) and not what.is_module:
            return functools.partial(_loss_of_trainer, torch, what, args, kwargs), "the trainer's step was run again"
    if scene.frames:
        script = script_of(torch, scene.frames)
        if script is not None:
            return script.run, "the lines of the script that compute the loss were run again"
    if scene.calls:
        what, args, kwargs = scene.calls[-1]
        return functools.partial(what, *args, **kwargs), f"the call of {type(what).__name__} was run again"
    return None, ""


def script_of(torch: Any, frames: List[FrameType]) -> Optional[LossAgain]:
    """Of the innermost function that has called a backward pass; the update may stand in another one."""
    for frame in frames:
        script, _ = outcome(LossAgain, torch, frame)
        if script is not None and script.can:
            return script  # type: ignore[no-any-return]
    return None


def _loss_of_trainer(torch: Any, function: BatchFunction, args: Any, kwargs: Any) -> Any:
    return tensors_of(function.part(TRIAL, args, kwargs), torch)[0]


def uncompiled(torch: Any) -> Any:
    """A compiled model would be compiled anew for the checks: it is run operation by operation instead."""
    stance = getattr(getattr(torch, "compiler", None), "set_stance", None)
    return contextlib.nullcontext() if stance is None else stance("force_eager")


@contextlib.contextmanager
def without_traces(torch: Any, models: List[Any]) -> Iterator[None]:
    """Random numbers, statistics, gradients and plain attributes are afterwards what they were."""
    random = random_state.capture(torch)
    with contextlib.ExitStack() as stack:
        stack.enter_context(running_again())
        stack.enter_context(among_ranks.nothing_sent_by_wrappers(torch))
        stack.enter_context(among_ranks.refusing_collectives(torch))
        stack.enter_context(uncompiled(torch))
        for model in models:
            stack.enter_context(buffers_put_back(torch, model))
            stack.enter_context(StepUndo(torch, model).unchanged())
            stack.enter_context(attributes_put_back(model))
            stack.enter_context(aside(list(model.parameters())))
        try:
            yield
        finally:
            random_state.restore(torch, random)


def checked(scene: Scene, backward: bool = False) -> Tuple[Optional[CheckedOps], Any, str]:
    """(what was seen, the loss, how) of a run in checking mode; None where there is none, then with the reason."""
    torch = scene.torch
    if not scene.has_room:
        return None, None, "there is no memory to run it once more"
    run, how = again(scene)
    if run is None:
        return None, None, "nothing that could be run again was at hand"
    models = scene.models()
    ops = CheckedOps(torch, max(models, key=_size) if models else None, scene.inputs(), backward)

    def watched() -> Any:
        with without_traces(torch, models), ops.watching(), torch.enable_grad():
            loss = run()
            return (loss, backward_ops.culprit(torch, loss, models, ops)) if backward else (loss, None)

    found, error = outcome(watched)
    if error is not None:
        return None, None, f"it could not be run again: {type(error).__name__}: {error}"[:200]
    return ops, found, how


def _size(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# -- a loss that is not finite


def of_loss(scene: Scene) -> NonFinite:
    torch = scene.torch
    weights = bad_weights(scene)
    if weights:
        return of_weights(weights)
    ops, found, how = checked(scene)
    if ops is not None:
        made = ops.began(tensors_of(found[0], torch))
        if made is not None:
            return _told(scene, ops, made, how)
        how = f"{how} and gave finite numbers"
    return _by_graph(scene, how)


def of_weights(names: List[str]) -> NonFinite:
    return {
        "origin": events.WEIGHTS,
        "at": {"layer": names[0].rsplit(".", 1)[0], "op": None},
        "values": f"{len(names)} of the parameters are not finite, the first is {names[0]}",
        "reproduced": None,
        "replay": "the weights were not finite when the step began",
    }


def bad_weights(scene: Scene) -> List[str]:
    return [name for model in scene.models() for name in first_bad(scene.torch, model.named_parameters())]


def _told(scene: Scene, ops: CheckedOps, made: Made, how: str) -> NonFinite:
    facts: NonFinite = {"reproduced": True, "replay": f"{how}, each operation checked"}
    if made.from_outside:
        value = made.value
        bad = (
            bad_input(scene.torch, made.from_outside, value) if value is not None else BadInput(name=made.from_outside)
        )
        outcome(add_sources, scene.torch, bad, value, scene.loader, scene.variables())
        if value is not None and value.dim() and not _is_batch(scene, value):
            bad["indices"], bad["rows"] = bad.get("rows", []), []  # all of the data, of which the script takes a part
        facts["input"] = bad
        facts["origin"] = events.INPUT if _is_input(scene, ops, made, value) else events.TARGET
        if value is not None and _is_constant(scene, value):
            facts["origin"] = events.CONSTANT
        return facts
    in_model = made.place.get("layer") is not None and not _is_loss_layer(made.place.get("layer"))
    facts["origin"] = events.FORWARD if in_model else events.LOSS
    facts["at"], facts["values"] = made.place, made.values
    return facts


def _is_batch(scene: Scene, value: Any) -> bool:
    sizes = {int(leaf.shape[0]) for _, leaf in scene.given() if leaf.dim()}
    return not sizes or int(value.shape[0]) in sizes


def _is_constant(scene: Scene, value: Any) -> bool:
    """Weights of classes, say: a loss keeps them as its buffer, or they have fewer entries than the batch has rows."""
    sizes = [int(leaf.shape[0]) for _, leaf in scene.given() if leaf.dim()]
    if not value.dim() or (sizes and int(value.shape[0]) < min(sizes)):
        return True
    modules = [one for one in scene.variables() if isinstance(one, scene.torch.nn.Module)]
    return any(buffer is value for module in modules for buffer in module.buffers())


def _is_loss_layer(name: Optional[str]) -> bool:
    return name is not None and name.endswith("Loss")


def _is_input(scene: Scene, ops: CheckedOps, made: Made, value: Any) -> bool:
    name = made.from_outside.lower()
    if any(word in name for word in TARGET_NAMES):
        return False
    return id(made) in ops.entered or any(leaf is value for _, leaf in scene.given())


def _by_graph(scene: Scene, how: str) -> NonFinite:
    """What the graph itself has saved of the pass that went wrong."""
    found = graph_values.first_bad_node(scene.torch, scene.loss)
    if found is None:
        return {"origin": events.UNKNOWN, "reproduced": False, "replay": how}
    op, values, dtype = found
    return {
        "origin": events.FORWARD,
        "at": {"layer": None, "op": op, "dtype": dtype},
        "values": values,
        "reproduced": False,
        "replay": f"{how}; the operation is named by what autograd had saved of the pass itself",
    }


# -- a gradient that is not finite


def of_input(scene: Scene) -> Optional[NonFinite]:
    """What went into the model was not finite, and a `tanh` or `where` has hidden it from the loss. Minus infinity alone is a mask."""
    torch = scene.torch
    for name, value in scene.given():
        if is_float(torch, value) and value.grad_fn is None and bool((value.isnan() | (value == float("inf"))).any()):
            bad = bad_input(torch, name, value)
            outcome(add_sources, torch, bad, value, scene.loader, scene.variables())
            replay = "the gradient of what it was multiplied with is not finite"
            return {"origin": events.INPUT, "input": bad, "reproduced": None, "replay": replay}
    return None


def of_gradient(scene: Scene) -> NonFinite:
    given = of_input(scene)
    if given is not None:
        return given
    ops, found, how = checked(scene, backward=True)
    if ops is None:
        return {"origin": events.BACKWARD, "reproduced": None, "replay": how}
    loss, culprit = found
    made = ops.began(tensors_of(loss, scene.torch))
    if made is not None:  # the loss itself was not finite after all
        return _told(scene, ops, made, how)
    if culprit is None:
        replay = f"{how} with the backward pass, and gave finite gradients"
        return {"origin": events.BACKWARD, "reproduced": False, "replay": replay}
    place, values = culprit
    replay = f"{how}, each gradient of the backward pass checked"
    return {"origin": events.BACKWARD, "at": place, "values": values, "reproduced": True, "replay": replay}
