"""What model, loss, optimizer and the first batch show by themselves: told once, right after the first step."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Optional, Set, Tuple

from ...never_raise import outcome
from ...numerics.events import Head, LastLayer, Loss, Optimizer, Setup, Weights
from ...numerics.plain_numbers import Told, told
from ...numerics.repeatable import methods_of, repeatable
from ..batch_function import BatchFunction
from ..tensor_nests import tensors_of
from . import loss_graph
from .hidden_overflow import hidden_overflow
from .linear_chain import linear_chain
from .loss_again import LossAgain
from .loss_graph import LossFound
from .origin import TARGET_NAMES, Scene, without_traces
from .tensor_facts import input_facts, output_facts, target_facts

NAMES = 8  # parameters that are named in a list
INPUTS = 4
HEADS = 8  # terms of a loss
RECURRENT = ("RNN", "LSTM", "GRU")


def setting(group: Dict[str, Any], name: str) -> Told:
    """Of an optimizer; None where it has none, or a pair (the `eps` of Adafactor)."""
    value = group.get(name)
    return None if isinstance(value, (tuple, list)) else told(value)


class SetupFacts:
    """Of the first batch in its backward pass; of the model before its first update; complete when all optimizers of a
    step are known."""

    def __init__(self, torch: Any, scene: Scene) -> None:
        self._torch = torch
        self.models = scene.models()
        losses = (
            list(itertools.islice(loss_graph.losses_in(scene.loss), HEADS)) if scene.loss.grad_fn is not None else []
        )
        found = losses[0] if losses else None
        self.facts: Setup = {"loss": self._loss(scene, found)}
        output = self._output(scene, found)
        if output is not None:
            self.facts["output"] = output_facts(torch, output)
        target = found.target if found is not None and found.target is not None else _target_by_shape(scene, output)
        if target is not None:
            self.facts["targets"] = target_facts(torch, target)
        self.facts["heads"] = [self._head(number, each) for number, each in enumerate(losses[1:], 2)]
        inputs = _inputs(scene, target) or _inputs(scene, None)
        self.facts["inputs"] = [input_facts(torch, value, name) for name, value in inputs[:INPUTS]]
        self.loss_found = found
        self._below = found.below if found is not None else None
        self._half = output.dtype if output is not None else None
        self._model: Any = None
        if any(self._precision(model) == "float16" for model in self.models) and scene.loss.grad_fn is not None:
            overflow = outcome(hidden_overflow, torch, scene.loss)[0]
            if overflow is not None:
                self.facts["overflow"] = overflow

    def choose(self, optimizer: Any) -> bool:
        """The model that this optimizer trains, before its first update; False where none that was called is its."""
        given = {id(p) for group in optimizer.param_groups for p in group["params"]}
        sizes = [(sum(p.numel() for p in model.parameters() if id(p) in given), model) for model in self.models]
        size, model = max(sizes, key=lambda each: each[0], default=(0, None))
        if not size or model is None:
            return False
        self._model = model
        group = optimizer.param_groups[0]
        facts: Optimizer = {
            "name": type(optimizer).__name__,
            "rate": setting(group, "lr"),
            "weight_decay": setting(group, "weight_decay"),
            "epsilon": setting(group, "eps"),
            "momentum": setting(group, "momentum"),
            "parameters": sum(p.numel() for each in optimizer.param_groups for p in each["params"]),
        }
        if (
            "initial_lr" in group
        ):  # by one of `torch.optim.lr_scheduler` that goes by a count, not by what a validation says
            facts["schedule"] = "torch.optim.lr_scheduler"
        self.facts["optimizer"] = facts
        self.facts["last"] = self._last()
        names = {id(p): name for each in self.models for name, p in each.named_parameters()}
        self.facts["linear"] = linear_chain(self._below, names)[:NAMES]
        self._of_model(model)
        return True

    @property
    def is_chosen(self) -> bool:
        return self._model is not None

    def completed(self, step: int, given: Set[int], clips: Optional[bool]) -> Setup:
        """`given`: parameters of all optimizers that were seen, by id."""
        named = list(self._model.named_parameters())
        optimizer = self.facts["optimizer"]
        optimizer["clips"] = clips
        optimizer["not_given"] = [name for name, p in named if p.requires_grad and id(p) not in given][:NAMES]
        self.facts["step"] = step
        self._model, self.models, self._below, self.loss_found = None, [], None, None
        return self.facts

    def _head(self, number: int, found: LossFound) -> Head:
        """Of another term of the loss, as far as autograd has saved it."""
        head: Head = {"name": f"term {number} of the loss", "loss": _loss_facts(found)}
        head["last"] = {"activation": loss_graph.activation_of(found.below)}
        output = found.output if found.output is not None else found.log_probabilities
        if output is not None:
            head["output"] = output_facts(self._torch, output)
        if found.target is not None:
            head["targets"] = target_facts(self._torch, found.target)
        return head

    def _loss(self, scene: Scene, found: Optional[LossFound]) -> Loss:
        script = outcome(LossAgain, self._torch, scene.frames[0])[0] if scene.frames else None
        line = script.line if script is not None else None
        if found is None:
            return {"name": "own function", "family": None, "from_logits": None, "line": line}
        facts: Loss = {**_loss_facts(found), "line": line}
        if loss_graph.over_rows(scene.loss):
            facts["over_rows"] = True
        return facts

    def _output(self, scene: Scene, found: Optional[LossFound]) -> Any:
        """What goes into the loss, as autograd has saved it; else the model's call once more, where that does not show."""
        if found is None:
            return None
        if found.output is not None:
            return found.output
        torch, rows, logarithms = self._torch, scene.calls, found.log_probabilities
        if logarithms is not None and loss_graph.activation_of(found.below) is not None:
            return logarithms  # of this shape; where they come from is known
        callable_again = scene.has_room and rows and not isinstance(rows[-1][0], BatchFunction)
        if not callable_again or not _is_repeatable(rows[-1][0]):
            return logarithms
        what, args, kwargs = rows[-1]

        def again() -> Any:
            with without_traces(torch, self.models), torch.no_grad():
                return what(*args, **kwargs)

        tensors = [t for t in tensors_of(outcome(again)[0], torch) if t.is_floating_point() and t.dim()]
        return tensors[0] if tensors else logarithms

    def _last(self) -> LastLayer:
        """Of what goes into the loss; else the last layer of the model."""
        parameter = loss_graph.parameter_of(self._below) if self._below is not None else None
        modules = [(name, module) for model in self.models for name, module in model.named_modules()]
        held = (
            self._torch.nn.ParameterDict,
            self._torch.nn.ParameterList,
        )  # are no layers: Keras keeps all of a model's in one
        owners = [(n, m) for n, m in modules if any(p is parameter for p in m.parameters(recurse=False))]
        owners = [(n, m) for n, m in owners if not isinstance(m, held)]
        weighted = [(n, m) for n, m in modules if has_weight(self._torch, m)]
        name, layer = owners[0] if owners else weighted[-1] if weighted else ("", None)
        last: LastLayer = {"layer": name, "activation": loss_graph.activation_of(self._below)}
        if layer is not None:
            last["kind"] = type(layer).__name__
            units = getattr(layer, "out_features", None) or getattr(layer, "out_channels", None)
            if units:
                last["units"] = int(units)
        return last

    def _of_model(self, model: Any) -> None:
        kinds = [type(module).__name__ for module in model.modules()]
        facts = self.facts
        facts["recurrent"] = any(word in kind for kind in kinds for word in RECURRENT)
        facts["normalised"] = any("Norm" in kind for kind in kinds)
        first = next((m for m in model.modules() if next(iter(m.parameters(recurse=False)), None) is not None), None)
        facts["first_layer"] = {"kind": type(first).__name__ if first is not None else type(model).__name__}
        facts["weights"] = self._weights(model)
        facts["half"], facts["model"] = self._precision(model), type(model).__name__

    def _precision(self, model: Any) -> Optional[str]:
        torch = self._torch
        kinds = {self._half, *(parameter.dtype for parameter in model.parameters())}
        half = next((kind for kind in (torch.float16, torch.bfloat16) if kind in kinds), None)
        return None if half is None else str(half).replace("torch.", "")

    def _weights(self, model: Any) -> Weights:
        named = list(model.named_parameters())
        frozen = [(name, p) for name, p in named if not p.requires_grad]
        kernels = [(name, p.detach()) for name, p in named if p.dim() >= 2 and p.numel()]
        zero = [name for name, value in kernels if not bool(value.any())]
        constant = [
            name
            for name, value in kernels
            if name not in zero and value.numel() > 1 and bool((value == value.flatten()[0]).all())
        ]
        found: Weights = {
            "trainable": sum(p.numel() for _, p in named if p.requires_grad),
            "frozen": sum(p.numel() for _, p in frozen),
            "frozen_names": [name for name, _ in frozen][:NAMES],
            "zero": zero[:NAMES],
            "constant": constant[:NAMES],
        }
        if kernels:
            deviations = [(float(value.float().std(unbiased=False)), name, value) for name, value in kernels]
            std, name, value = max(deviations, key=lambda each: each[0])
            found["largest"] = {"name": name, "std": told(std), "shape": list(value.shape)}
        return found


def _loss_facts(found: LossFound) -> Loss:
    facts: Loss = {"name": found.name, "family": found.family, "from_logits": found.from_logits}
    if found.compared is not None:
        facts["compared"] = found.compared
    if found.classes:
        facts["classes"] = found.classes
    if found.log_probabilities is not None and found.log_probabilities.dim() == 1:
        facts["vector"] = True
    return facts


def _is_repeatable(model: Any) -> bool:
    return repeatable(
        function for kind in {type(module) for module in model.modules()} for function in methods_of(kind)
    )


def _target_by_shape(scene: Scene, output: Any) -> Any:
    """A variable of the script's with the name or the shape of a target."""
    given = {id(value) for _, value in scene.given()}
    candidates = [(name, value) for name, value in scene.tensors() if value.grad_fn is None and not value.requires_grad]
    for name, value in candidates:
        if any(word in name.lower() for word in TARGET_NAMES):
            return value
    if output is None:
        return None
    for _, value in candidates:
        if id(value) not in given and value.dim() and tuple(value.shape) == tuple(output.shape):
            return value
    return None


def _inputs(scene: Scene, target: Any) -> List[Tuple[str, Any]]:
    """What models were given and is no target. Of calls alike (micro-batches, pairs) the last."""
    found: Dict[Any, Tuple[str, Any]] = {}
    place = target.data_ptr() if target is not None and target.numel() else None
    for name, value in scene.given():
        if value.grad_fn is not None or value.is_complex() or any(word in name.lower() for word in TARGET_NAMES):
            continue
        if value.dim() and value.numel() and value.data_ptr() != place:
            found[name, value.shape[1:]] = (scene.names.get(id(value), name), value)
    return list(found.values())


def has_weight(torch: Any, module: Any) -> bool:
    """Without asking for it: one with a parametrization is computed then, and a spectral norm moves on."""
    own = any(name == "weight" for name, _ in module.named_parameters(recurse=False))
    return own or torch.nn.utils.parametrize.is_parametrized(module, "weight")
