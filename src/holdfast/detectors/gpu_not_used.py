"""The run trains on the CPU although there is a GPU."""

from __future__ import annotations

from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

STEPS = 20  # a script may build on the CPU, try a step there, and then move to the GPU


@reads(latest=["train.steps_count"], events=["train.device", "gpu.found", "inside.hello"])
def find(window: Window) -> Finding | None:
    trains_on, steps = window.event("train.device"), window.value("train.steps_count")
    if trains_on is None or (steps or 0) < STEPS or not str(trains_on.data.get("device", "")).lower().startswith("cpu"):
        return None
    seen = trains_on.data.get("available") or trains_on.data.get("gpus")
    cards = [str(event.data.get("name") or "a GPU") for event in window.events("gpu.found")]
    hello = window.event("inside.hello")
    if hello is not None and hello.data.get("gpus_hidden"):
        return None  # CUDA_VISIBLE_DEVICES is empty: it is meant to be so
    card = cards[0] if cards else "a GPU"
    if seen:
        text = f"training runs on the CPU, although {card} is there and the framework can use it"
    elif cards:
        text = f"training runs on the CPU: {card} is there, but the framework cannot use it"
    else:
        return None
    return Finding("gpu-not-used", 0.8, (Evidence(text, "telemetry", trains_on.at),))
