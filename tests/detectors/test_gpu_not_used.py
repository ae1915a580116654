"""A GPU that is there and not used is told; one that somebody hid is not."""

from __future__ import annotations

from typing import Any

from holdfast.detectors.gpu_not_used import find
from holdfast.vocabulary import Event, Finding
from tests.story import START, story

CARD = Event("gpu.found", START, {"index": 0, "name": "NVIDIA H200"})


def found(*events: Event, device: str = "cpu", steps: float = 50.0, **about: Any) -> Finding | None:
    trains = Event("train.device", START + 3, {"device": device, **about})
    return find(story(None, events=[trains, *events], train__steps_count=[steps]))


def test_a_gpu_the_framework_could_use() -> None:
    finding = found(CARD, gpus=1)
    assert finding is not None
    assert finding.evidence[0].text == (
        "training runs on the CPU, although NVIDIA H200 is there and the framework can use it"
    )


def test_a_gpu_the_framework_cannot_use() -> None:
    finding = found(CARD, gpus=0)
    assert finding is not None and "cannot use it" in finding.evidence[0].text


def test_silence_where_all_is_well() -> None:
    assert found(gpus=0) is None
    assert found(CARD, device="cuda", gpus=1) is None
    assert found(CARD, gpus=1, steps=3.0) is None
    assert found(CARD, Event("inside.hello", START, {"gpus_hidden": True}), gpus=0) is None
