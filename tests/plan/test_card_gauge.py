"""A card's peak comes from the framework's allocator; here a stand-in for it, since none of this has been run on a card."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holdfast.inside.plan.gauges import Gauges
from holdfast.inside.tensorflow.plan import card_gauge as of_tensorflow
from holdfast.inside.torch.plan_anatomy import card_gauge as of_torch


class Cuda:
    """Two cards; the second is the fuller one."""

    def __init__(self) -> None:
        self.most = [300, 500]
        self.started = True

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self.started

    def device_count(self) -> int:
        return 2

    def reset_peak_memory_stats(self, device: int) -> None:
        self.most[device] = 10

    def max_memory_allocated(self, device: int) -> int:
        return self.most[device]

    def memory_reserved(self, device: int) -> int:
        return 600

    def mem_get_info(self, device: int) -> tuple[int, int]:
        return (1000 - 100 * device, 2000)

    def empty_cache(self) -> None: ...


def test_the_fullest_of_pytorchs_cards_counts() -> None:
    cuda = Cuda()
    gauges = Gauges(of_torch(SimpleNamespace(cuda=cuda)))
    assert gauges.gpu_bytes() == 500
    assert gauges.card is not None
    assert gauges.card.room_bytes() == 900 + 600
    gauges.card.reset()
    assert gauges.gpu_bytes() == 10


def test_a_card_that_is_not_in_use_yet_is_not_started_for_it() -> None:
    cuda = Cuda()
    cuda.started = False
    card = of_torch(SimpleNamespace(cuda=cuda))
    assert card is not None
    assert (card.most_bytes(), card.room_bytes()) == (0, None)


def test_without_a_card_only_the_host_is_measured() -> None:
    assert of_torch(SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))) is None
    assert Gauges(None).gpu_bytes() is None


def test_tensorflows_allocator_is_asked_and_set_back() -> None:
    asked: list[str] = []
    experimental = SimpleNamespace(
        get_memory_info=lambda device: {"peak": 700, "current": 100}, reset_memory_stats=asked.append
    )

    def cards(kind: str) -> list[Any]:
        return [kind]

    card = of_tensorflow(
        SimpleNamespace(config=SimpleNamespace(list_physical_devices=cards, experimental=experimental))
    )
    assert card is not None
    card.reset()
    assert (asked, card.most_bytes()) == (["GPU:0"], 700)
