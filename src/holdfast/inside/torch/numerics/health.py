"""How training goes, layer by layer, in the steps that are looked at: norms, shares of zeros, units, labels.

Gradients are taken right after the backward pass: what the script clips later is the script's.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Tuple

from ...numerics import events
from ...numerics.events import Health, ends
from ...numerics.labels import classes
from ...numerics.plain_numbers import told
from ...telemetry import Recorder
from .. import seams
from .finite import is_float
from .late_vector import LateVectors
from .layer_units import units_of
from .loss_graph import LossFound, found_in
from .tensor_facts import some_of

SOME = 1 << 16  # entries of a parameter that stand for all of it
LABELS = 1024
UNITS_EVERY_S = 2.0

Layer = Tuple[str, List[Any]]  # its name and parameters


class Sample:
    """One look: filled by the calls of a step, told when the update is over."""

    def __init__(
        self, recorder: Recorder, torch: Any, late: LateVectors, models: List[List[Layer]], scale: Any
    ) -> None:
        self._recorder, self._torch, self._late = recorder, torch, late
        self._models, self._scale = models, scale
        self._layers = [layer for layers in models for layer in layers]
        self.facts: Health = {"step": recorder.steps + 1, "epoch": recorder.epoch_number}
        self._scalars: List[Any] = []
        self._readers: List[Tuple[int, Callable[[List[float]], None]]] = []
        self._gradients: Dict[int, Tuple[Any, Any]] = {}  # by parameter: its norm, and its share of zeros
        self._before: List[Tuple[Any, Any, float]] = []
        self._norms: Dict[str, List[Any]] = {}
        self.optimizer = 0  # by id
        self.clips: Optional[bool] = None
        self.loss_name = ""

    # -- before the backward pass

    def loss(self, loss: Any, shown: Any, units: bool, names: Dict[int, str]) -> None:
        """`shown` is the loss as the script has it, before a scaler."""
        self._scalars, self._readers = [], []  # of the last pass before the update
        if shown.numel() == 1:
            self._read(shown, lambda numbers: self._set("loss", numbers[0]))
        found = found_in(loss) if loss.grad_fn is not None else None
        if found is not None:
            self.loss_name = found.name
            self._of_output(found)
        if units and loss.grad_fn is not None:
            self.facts["units"] = []
            for layer, kind, shares in ends(units_of(self._torch, loss, names)):
                self._read(shares, functools.partial(self._units, layer, kind))

    def _read(self, values: Any, take: Callable[[List[float]], None]) -> None:
        self._scalars.append(values.detach())
        self._readers.append((values.numel(), take))

    def _set(self, name: str, value: float) -> None:
        self.facts[name] = told(value)  # type: ignore[literal-required]

    def _of_output(self, found: LossFound) -> None:
        torch = self._torch
        output = found.log_probabilities if found.log_probabilities is not None else found.output
        target = found.target
        with torch.no_grad():
            if output is not None and is_float(torch, output) and output.dim():
                value = some_of(output.detach())  # logits of a language model take as much as all else in a step
                value = value if value.dim() > 1 else value.reshape(-1, 1)
                self._read(value.abs().amax(), lambda numbers: self._set("scale", numbers[0]))
                if value.shape[0] > 1:
                    self._read(value.float().std(0).amax(), lambda numbers: self._set("spread", numbers[0]))
            if target is not None and target.numel():
                self._of_target(found, output, target.detach())

    def _of_target(self, found: LossFound, output: Any, target: Any) -> None:
        labels = _labels(found, target)
        if labels is None:
            return
        self._read(labels.reshape(-1)[:LABELS], self._classes)
        guessed = _guesses(found, output, self._torch)
        if guessed is not None and guessed.shape == labels.shape:
            right = (guessed == labels).float().mean()
            self._read(right, lambda numbers: self._set("correct", numbers[0]))

    def _classes(self, numbers: List[float]) -> None:
        if all(number == int(number) for number in numbers):
            self.facts["classes"] = classes([int(number) for number in numbers])

    def _units(self, layer: str, kind: str, shares: List[float]) -> None:
        self.facts["units"].append([layer, kind, *(told(each) if each >= 0 else None for each in shares)])

    # -- after it

    def gradients(self) -> None:
        torch = self._torch
        found = [(p, _entries(torch, p.grad)) for _, parameters in self._layers for p in parameters]
        found = [(p, entries) for p, entries in found if is_float(torch, entries)]
        found = [(p, gradient) for p, gradient in found if id(p) not in self._gradients or not self.optimizer]
        if not found:
            return
        with torch.no_grad():
            norms = _norms(torch, [gradient for _, gradient in found])
            for (parameter, gradient), norm in zip(found, norms):
                there = gradient.numel() / parameter.numel()  # a sparse one has some rows
                zeros = 1 - (_some(gradient.detach()) != 0).float().mean() * there
                own = norm if self._scale is None else norm / self._scale.to(norm.device)
                self._gradients[id(parameter)] = (own, zeros)

    # -- around the update

    def before_update(self, optimizer: Any) -> None:
        torch = self._torch
        self.optimizer = id(optimizer)
        self._layers = _of_optimizer(self._models, optimizer)
        self.gradients()  # of those that no model that was called has
        self.facts["rate"] = told(optimizer.param_groups[0].get("lr"))
        given = {id(p) for group in optimizer.param_groups for p in group["params"]}
        with torch.no_grad():
            self._clipped(given)
            for _, parameters in self._layers:
                for parameter in parameters:
                    if id(parameter) in given and is_float(torch, parameter):
                        some = _some(parameter.detach())
                        self._before.append((parameter, some.clone(), (parameter.numel() / some.numel()) ** 0.5))

    def carried(self, share: Any) -> None:
        self._read(share, lambda numbers: self._set("carried", numbers[0]))

    def _clipped(self, given: Any) -> None:
        """Whether a gradient is smaller now than after the backward pass; on the CPU, where it can be read."""
        for _, parameters in self._layers:
            for parameter in parameters:
                known = self._gradients.get(id(parameter))
                there = known is not None and id(parameter) in given and self._scale is None
                if there and known is not None and known[0].is_cpu and is_float(self._torch, parameter.grad):
                    now = float(_norms(self._torch, [parameter.grad])[0])
                    self.clips = now < 0.999 * float(known[0])
                    return

    def after_update(self, was_made: bool) -> None:
        torch = self._torch
        with torch.no_grad():
            moved = {}
            if was_made and self._before:
                differences = [_some(p.detach()) - before for p, before, _ in self._before]
                norms = _norms(torch, differences)
                moved = {id(p): norm * scale for (p, _, scale), norm in zip(self._before, norms)}
            weights = [p for _, parameters in self._layers for p in parameters if is_float(torch, p)]
            sizes = {id(p): norm for p, norm in zip(weights, _norms(torch, [p.detach() for p in weights]))}
            if weights:
                self._read_groups(sizes, moved)
        scalars, self._scalars, self._before = self._scalars, [], []
        if scalars:
            self._late.read(scalars, self._finish)

    def _read_groups(self, sizes: Dict[int, Any], moved: Dict[int, Any]) -> None:
        """Four numbers for each parameter: weight, gradient, update, zeros; -1 for what there is not."""
        torch = self._torch
        kept = [(name, [p for p in parameters if id(p) in sizes]) for name, parameters in self._layers]
        kept = ends([layer for layer in kept if layer[1]])
        none = next(iter(sizes.values())).new_full((), -1.0)
        for _, parameters in kept:
            for p in parameters:
                norm, zeros = self._gradients.get(id(p), (none, none))
                four = [each.to(none.dtype) for each in (sizes[id(p)], norm, moved.get(id(p), none), zeros)]
                self._scalars.append(torch.stack(four))
        count = 4 * sum(len(parameters) for _, parameters in kept)
        shapes = [(name, [p.numel() for p in parameters]) for name, parameters in kept]
        self._readers.append((count, lambda numbers: self._groups(shapes, numbers)))

    def _groups(self, shapes: List[Tuple[str, List[int]]], numbers: List[float]) -> None:
        groups, at = [], 0
        for name, counts in shapes:
            rows = [numbers[at + 4 * i : at + 4 * i + 4] for i in range(len(counts))]
            at += 4 * len(counts)
            with_gradient = [(row, count) for row, count in zip(rows, counts) if row[1] != -1]
            total = sum(count for _, count in with_gradient)
            zeros = sum(row[3] * count for row, count in with_gradient) / total if total else None
            groups.append([name, _joined(rows, 0), _joined(rows, 1), _joined(rows, 2), told(zeros), sum(counts)])
        if self._scale is None or all(isinstance(group[2], float) for group in groups):  # an ordinary overflow is none
            self.facts["groups"] = groups

    def _finish(self, numbers: List[float]) -> None:
        at, readers, self._readers = (
            0,
            self._readers,
            [],
        )  # they hold this sample: it is gone at once, not with the next collection
        for count, take in readers:
            take(numbers[at : at + count])
            at += count
        events.tell_health(self._recorder, self.facts)


def _joined(rows: List[List[float]], which: int) -> Any:
    found = [row[which] for row in rows if row[which] != -1]
    return told(sum(value * value for value in found) ** 0.5) if found else None


def _norms(torch: Any, tensors: List[Any]) -> List[Any]:
    if not tensors:
        return []
    half = any(each.dtype in (torch.float16, torch.bfloat16) for each in tensors)
    norms = None if half else seams.norms_of(torch, tensors)
    if norms is None:
        norms = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in tensors]
    return norms


def _entries(torch: Any, gradient: Any) -> Any:
    if gradient is not None and gradient.layout is torch.sparse_coo:
        return gradient.detach().coalesce().values()
    return gradient


def _some(tensor: Any) -> Any:
    """All of a small one; evenly chosen entries of a large one."""
    if tensor.numel() <= SOME or not tensor.is_contiguous():
        return tensor
    return tensor.view(-1)[:: -(-tensor.numel() // SOME)]


def _labels(found: LossFound, target: Any) -> Any:
    """As one number a row; None where it is no classification."""
    if found.family in ("sparse", "nll"):
        return target
    if found.family == "categorical" and target.dim() == 2:
        return target.argmax(1)
    if found.family == "binary":
        return target.round()
    if found.family == "regression" and not target.is_complex():
        return target  # whole numbers are told as labels, others are not
    return None


def _guesses(found: LossFound, output: Any, torch: Any) -> Any:
    if output is None or found.family not in ("sparse", "nll", "categorical", "binary"):
        return None
    if found.family == "binary":
        return (output.detach() > (0.0 if found.from_logits else 0.5)).to(found.target.dtype)
    return output.detach().argmax(1) if output.dim() > 1 else None


def layers_of(models: List[Any]) -> List[List[Layer]]:
    """Of each model by the module that owns them, in its order."""
    return [_layers_of(model, f" ({number + 1})" if number else "") for number, model in enumerate(models)]


def _layers_of(model: Any, which: str) -> List[Layer]:
    found: Dict[str, List[Any]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            layer = name.rsplit(".", 1)[0] if "." in name else type(model).__name__
            found.setdefault(f"{layer}{which}", []).append(parameter)
    return list(found.items())


def _of_optimizer(models: List[List[Layer]], optimizer: Any) -> List[Layer]:
    """The models it trains, with what of them it does not; by number what is no model's that was called."""
    given = {id(p): p for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    known = {id(p) for layers in models for _, parameters in layers for p in parameters}
    own = [layers for layers in models if any(id(p) in given for _, parameters in layers for p in parameters)]
    rest = [p for key, p in given.items() if key not in known]
    return [*(layer for layers in own for layer in layers), *((f"parameter {n}", [p]) for n, p in enumerate(rest))]
