"""What model, loss, optimizer and the first batch show by themselves: told once, right after the first step."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set, Tuple

from ...never_raise import outcome
from ...numerics.events import LastLayer, Loss, Optimizer, Setup, Weights
from ...numerics.plain_numbers import told
from ..batch_function import BatchFunction
from ..tensor_nests import tensors_of
from . import loss_graph
from .linear_chain import linear_chain
from .loss_again import LossAgain
from .loss_graph import LossFound
from .origin import TARGET_NAMES, Scene, without_traces
from .tensor_facts import input_facts, output_facts, target_facts

NAMES = 8  # parameters that are named in a list
INPUTS = 4
RECURRENT = ("RNN", "LSTM", "GRU")


class SetupFacts:
    """Of the first batch in its backward pass; of the model before its first update; complete when all optimizers of a
    step are known."""

    def __init__(self, torch: Any, scene: Scene) -> None:
        self._torch = torch
        self.models = scene.models()
        found = loss_graph.found_in(scene.loss) if scene.loss.grad_fn is not None else None
        self.facts: Setup = {"loss": self._loss(scene, found)}
        output = self._output(scene, found)
        if output is not None:
            self.facts["output"] = output_facts(torch, output)
        target = found.target if found is not None and found.target is not None else _target_by_shape(scene, output)
        if target is not None:
            self.facts["targets"] = target_facts(torch, target)
        inputs = _inputs(scene, target) or _inputs(scene, None)
        self.facts["inputs"] = [input_facts(torch, value, name) for name, value in inputs[:INPUTS]]
        self._below = found.below if found is not None else None
        self._half = output.dtype if output is not None else None
        self._model: Any = None

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
            "rate": told(group.get("lr")),
            "weight_decay": told(group.get("weight_decay")),
            "momentum": told(group.get("momentum")),
            "parameters": sum(p.numel() for each in optimizer.param_groups for p in each["params"]),
        }
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
        self._model, self.models, self._below = None, [], None
        return self.facts

    def _loss(self, scene: Scene, found: Optional[LossFound]) -> Loss:
        script = outcome(LossAgain, self._torch, scene.frames[0])[0] if scene.frames else None
        line = script.line if script is not None else None
        if found is None:
            return {"name": "own function", "family": None, "from_logits": None, "line": line}
        facts: Loss = {"name": found.name, "family": found.family, "from_logits": found.from_logits, "line": line}
        if loss_graph.over_rows(scene.loss):
            facts["over_rows"] = True
        if found.compared is not None:
            facts["compared"] = found.compared
        return facts

    def _output(self, scene: Scene, found: Optional[LossFound]) -> Any:
        """What goes into the loss: saved by autograd, a variable of the script's, or the model's call once more."""
        if found is not None and found.output is not None:
            return found.output
        torch, rows = self._torch, scene.calls
        if not rows or isinstance(rows[-1][0], BatchFunction):
            return found.log_probabilities if found is not None else None
        what, args, kwargs = rows[-1]

        def again() -> Any:
            with without_traces(torch, self.models), torch.no_grad():
                return what(*args, **kwargs)

        tensors = [t for t in tensors_of(outcome(again)[0], torch) if t.is_floating_point() and t.dim()]
        return tensors[0] if tensors else (found.log_probabilities if found is not None else None)

    def _last(self) -> LastLayer:
        """Of what goes into the loss; else the last layer of the model."""
        parameter = loss_graph.parameter_of(self._below) if self._below is not None else None
        modules = [(name, module) for model in self.models for name, module in model.named_modules()]
        owners = [(n, m) for n, m in modules if any(p is parameter for p in m.parameters(recurse=False))]
        weighted = [(n, m) for n, m in modules if getattr(m, "weight", None) is not None]
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
