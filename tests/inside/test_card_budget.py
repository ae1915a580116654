"""`--gpu-memory` for TensorFlow, with stand-ins for its context: what it is on a card, tests/gpu says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.inside.tensorflow.budget import _limit_cards

MIB = 1 << 20


class Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def event(self, kind: str, **data: Any) -> None:
        self.events.append((kind, data))


class Devices(list[Any]):
    """As the repeated field of TensorFlow's options."""

    def add(self, memory_limit_mb: list[float]) -> None:
        self.append(SimpleNamespace(memory_limit_mb=memory_limit_mb))


class Context:
    def __init__(self, cards: int, limits: list[float] | None = None) -> None:
        self._cards = ["card"] * cards
        self._devices = Devices()
        if limits is not None:
            self._devices.add(limits)

    def list_physical_devices(self, _kind: str) -> list[str]:
        return self._cards

    get_visible_devices = list_physical_devices

    def _compute_gpu_options(self) -> Any:
        return SimpleNamespace(experimental=SimpleNamespace(virtual_devices=self._devices))


@pytest.mark.parametrize(
    ("context", "limits"),
    [
        (Context(1), [[1200]]),
        (Context(2), [[1200], [1200]]),
        (Context(1, [1500.0]), [[1200]]),
        (Context(1, [900.0]), [[900.0]]),
        (Context(1, [0.0]), [[1200]]),
    ],
)
def test_every_card_gets_the_budget_or_a_lower_limit_of_the_users_own(context: Any, limits: list[list[float]]) -> None:
    told = Told()
    _limit_cards(told, context, 1200 * MIB)  # type: ignore[arg-type]
    options = context._compute_gpu_options()
    assert [device.memory_limit_mb for device in options.experimental.virtual_devices] == limits
    assert [kind for kind, _ in told.events] == ["memory.budget"]


def test_a_tensorflow_that_is_built_otherwise_is_said_not_to_hold_the_budget() -> None:
    told, context = Told(), SimpleNamespace(list_physical_devices=lambda _kind: ["card"])
    _limit_cards(told, context, 1200 * MIB)  # type: ignore[arg-type]
    assert [kind for kind, _ in told.events] == ["memory.budget_not_held"]


def test_without_a_card_there_is_nothing_to_hold() -> None:
    told = Told()
    _limit_cards(told, Context(0), MIB)  # type: ignore[arg-type]
    assert told.events == []
