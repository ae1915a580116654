"""The outputs of a model that has a loss for each: what each of them is, and what it is compared with."""

from __future__ import annotations

from typing import Any, Dict, List

from ...numerics.events import Head
from ...tensorflow.numerics.array_facts import of_output, of_targets
from ...tensorflow.numerics.finiteness import array_of
from .last_layer import last_layer
from .loss_kinds import facts_of

HEADS = 12


def heads_of(model: Any, given: Any, targets: Any) -> List[Head]:
    """None of a model with one loss for all."""
    losses = getattr(model, "loss", None)
    if not isinstance(losses, (dict, list, tuple)) or len(losses) < 2:
        return []
    names = list(given) if isinstance(given, dict) else list(getattr(model, "output_names", ()))
    by_name = [_by_name(each, names) for each in (losses, given, targets)]
    layers = {one.name: one for one in getattr(model, "layers", ())}
    found = []
    for name in names[:HEADS]:
        loss, output, wanted = (each.get(name) for each in by_name)
        if loss is None or output is None or wanted is None:
            continue
        head: Head = {"name": f"the output {name}", "loss": facts_of(loss), "output": of_output(array_of(output))}
        head["targets"] = of_targets(array_of(wanted))
        if name in layers:
            head["last"] = last_layer(layers[name], output)
        found.append(head)
    return found


def _by_name(parts: Any, names: List[Any]) -> Dict[Any, Any]:
    if isinstance(parts, dict):
        return parts
    return dict(zip(names, parts)) if isinstance(parts, (list, tuple)) else {}
