"""Looks at numbers stay within the memory that is there: in parts, and on fewer rows where little is left."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from holdfast.inside.held_memory import held_by_this_process
from holdfast.inside.keras.numerics.health import Sampler
from holdfast.inside.numerics.events import DISTINCT
from holdfast.inside.numerics.room import is_ample, rows_beside
from holdfast.inside.tensorflow.numerics import array_facts
from holdfast.inside.tensorflow.numerics.finiteness import squares_between
from tests.inside.test_headroom import group

MIB = 1 << 20


def recorder(place: Path, left: int, pieces: int = 1, **rescue: Any) -> Any:
    used = 100
    return SimpleNamespace(
        pieces=pieces, settings={"groups": [group(place, left + used * MIB, used)], "rescue": rescue or None}
    )


def test_with_as_much_again_free_a_sample_may_have_all_rows(tmp_path: Path) -> None:
    plenty = recorder(tmp_path, held_by_this_process() + 64 * MIB)
    assert is_ample(plenty) and rows_beside(plenty, 32) == 32


def test_with_less_it_has_a_quarter_of_the_rows_that_training_runs_at_once(tmp_path: Path) -> None:
    little = held_by_this_process() // 4
    assert rows_beside(recorder(tmp_path, little), 96) == 24
    assert rows_beside(recorder(tmp_path, little, pieces=12), 96) == 2
    assert rows_beside(recorder(tmp_path, little), 3) == 0


def test_a_batch_that_is_in_pieces_has_no_whole_sample_however_much_is_free_now(tmp_path: Path) -> None:
    """Pages of the last piece have just been given back."""
    assert rows_beside(recorder(tmp_path, 1 << 40, pieces=8), 64) == 2


def test_a_budget_of_the_users_counts_as_what_is_left(tmp_path: Path) -> None:
    held = held_by_this_process()
    assert not is_ample(recorder(tmp_path, 1 << 40, host_budget_bytes=held + held // 2))
    assert is_ample(recorder(tmp_path, 1 << 40, host_budget_bytes=3 * held))


@pytest.mark.parametrize("scale, offset", [(1.0, 0.0), (1e-3, 2026.0), (1e6, -5e7)])
def test_moments_in_parts_are_those_of_the_whole(scale: float, offset: float) -> None:
    values = (np.random.default_rng(0).standard_normal(3 * array_facts.AT_ONCE + 17) * scale + offset).astype("float32")
    values[5], values[-1] = np.nan, np.inf
    found, good = array_facts.moments(values), values[np.isfinite(values)].astype("float64")
    assert (found.finite, found.non_finite) == (good.size, 2)
    assert (found.min, found.max) == (good.min(), good.max())
    assert found.mean == pytest.approx(good.mean(), rel=1e-9) and found.std == pytest.approx(good.std(), rel=1e-9)


def peak_of(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("look", [array_facts.of_input, array_facts.of_targets, array_facts.of_output])
def test_facts_of_a_large_array_take_little_memory(look: Callable[..., object]) -> None:
    images = np.zeros((64, 128, 128, 4), "float32")
    words = ("x",) if look is array_facts.of_input else ()
    assert peak_of(lambda: look(images, *words)) < 16 * MIB


def test_what_changed_is_told_without_a_copy_of_it() -> None:
    before, after = np.zeros(8 * MIB, "float32"), np.ones(8 * MIB, "float32")
    assert squares_between(before, after) == before.size
    assert peak_of(lambda: squares_between(before, after)) < 4 * MIB


def test_targets_of_many_values_and_of_one_hot_rows_are_told_as_before() -> None:
    numbers = array_facts.of_targets(np.arange(500_000, dtype="float32"))
    assert numbers["distinct"] == DISTINCT and numbers["one_hot"] is False
    one_hot = np.eye(10, dtype="float32")[np.arange(300_000) % 10]
    assert array_facts.of_targets(one_hot)["one_hot"] is True


def test_that_a_step_is_not_sampled_for_want_of_memory_is_told_once() -> None:
    told: list[tuple[str, Any]] = []
    recorder: Any = SimpleNamespace(event=lambda kind, **data: told.append((kind, data["reason"])), steps=3)
    sampler = Sampler(recorder, None, probe=lambda *_: None, may=lambda _: True)
    sampler._setup_told = True
    assert [sampler._probe(None, None, None) for _ in range(3)] == [None] * 3
    assert told == [("numerics.not_sampled", "memory is short: gradients and units are left out")]
