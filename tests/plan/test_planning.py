"""Measurements become a plan: kinds, layers, what fits, what helps; in words, as JSON, as a page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.plan import parts_to_begin_with, remembered
from holdfast.planning.measured import Measured, lines_of, measured
from holdfast.planning.plan import CARD_HEADROOM_RATIO, HEADROOM_RATIO, Plan, Room, micro_batch, plan
from holdfast.supervisor import known_micro_batches
from holdfast.supervisor.run_spec import RunSpec
from holdfast.views.plan_text import as_text
from holdfast.views.web.plan_page import plan_page

MIB = 1 << 20


def told(**changed: Any) -> list[dict[str, Any]]:
    point = {
        "kind": "point", "framework": "torch", "seconds": 0.1, "weights": 40 * MIB, "gradients": 40 * MIB,
        "optimizer": 80 * MIB, "batch_bytes": MIB, "optimizers": ["Adam"], "gpu_bytes": None,
        "layers": [{"name": "body (Linear)", "bytes": 60 * MIB}, {"name": "<b>head</b>", "bytes": 4 * MIB}],
        "layer_weights": {"body (Linear)": 30 * MIB},
    }  # fmt: skip
    begun = {"kind": "begun", "rows": 64, "held_bytes": 300 * MIB, "data_bytes": 20 * MIB, "resizes": True}
    points = [
        {**point, "rows": rows, "host_bytes": (420 + 2 * rows) * MIB, "activations": rows * MIB, **changed}
        for rows in (16, 32, 64)
    ]
    return [begun, *points, {"kind": "done"}]


def found(**changed: Any) -> Measured:
    result = measured(told(**changed))
    assert result is not None
    return result


def made(limit_mib: int | None = 4096, asked: int | None = None, **changed: Any) -> Plan:
    return plan(found(**changed), Room(None if limit_mib is None else limit_mib * MIB), asked)


def test_the_kinds_are_all_of_the_peak() -> None:
    result = made()
    assert sum(result.by_kind.values()) == pytest.approx(result.host_bytes, rel=1e-6)
    assert result.by_kind["activations"] == 64 * MIB
    assert result.by_kind["framework"] == (300 - 20 - 40) * MIB
    assert result.by_kind["data"] == 21 * MIB


def test_a_batch_that_does_not_fit_is_cut_into_as_few_equal_parts_as_do() -> None:
    result = made(limit_mib=700, asked=512)
    assert not result.fits
    assert result.largest_batch is not None
    assert result.measured.host().at(result.largest_batch) <= 700 * MIB * (1 - HEADROOM_RATIO)
    assert result.micro_batch <= result.largest_batch < 512
    assert 512 / result.micro_batch == pytest.approx(-(-512 // result.largest_batch), abs=0.1)


@pytest.mark.parametrize(
    ("batch", "largest", "micro"), [(64, 64, 64), (65, 64, 33), (100, 30, 25), (8, 0, 0), (8, None, 8)]
)
def test_micro_batches(batch: int, largest: int | None, micro: int) -> None:
    assert micro_batch(batch, largest) == micro


def test_options_are_of_this_model_and_its_framework() -> None:
    titles = {option.title.split(":")[0].split(" (")[0]: option for option in made().options}
    assert titles["a smaller optimizer"].saves_bytes == int(0.95 * 80 * MIB)
    assert "torch.optim.Adafactor" in titles["a smaller optimizer"].how
    assert "autocast" in titles["mixed precision"].how
    assert titles["mixed precision"].saves_bytes == 32 * MIB
    assert titles["sharding over 4 devices, on each of them"].saves_bytes == 120 * MIB
    keras = [option.how for option in made(framework="keras").options]
    assert any("mixed_bfloat16" in how for how in keras)
    assert not any("torch" in how for how in keras)


def test_what_is_there_already_is_not_advised() -> None:
    titles = [option.title for option in made(optimizers=["SGD"], half=True).options]
    assert not any("optimizer" in title or "mixed" in title for title in titles)


def test_on_a_card_its_own_memory_decides() -> None:
    lines = told()
    for line in lines[1:4]:
        line.update(gpu_bytes=(200 + 4 * line["rows"]) * MIB, host_bytes=900 * MIB)
    result = measured(lines)
    assert result is not None
    made_ = plan(result, Room(64 << 30, 1000 * MIB), None)
    assert made_.gpu_bytes == 456 * MIB
    assert made_.largest_batch == int((1000 * (1 - CARD_HEADROOM_RATIO) - 200) / 4)
    assert made_.smallest_card_gib == 4


def test_the_smallest_ram_leaves_room_for_the_system() -> None:
    assert made().smallest_ram_gib == 2
    assert made(asked=2048).smallest_ram_gib == 8


def test_the_sweet_spot_is_the_smallest_batch_that_is_as_fast_a_sample() -> None:
    lines = told()
    for line, seconds in zip(lines[1:4], (0.16, 0.20, 0.39), strict=True):
        line["seconds"] = seconds
    result = measured(lines)
    assert result is not None
    assert plan(result, Room(None)).sweet_spot == 32


def test_the_json_has_the_form_that_is_promised() -> None:
    answer = json.loads(json.dumps(made().as_json()))
    assert {"fits", "batch", "peak_bytes", "largest_batch", "micro_batch", "by_kind", "by_layer", "options"} <= set(
        answer
    )
    assert set(answer["peak_bytes"]) == {"host", "gpu"}
    kinds = {"weights", "gradients", "optimizer", "activations", "workspace", "framework", "data"}
    assert set(answer["by_kind"]) == kinds
    assert {tuple(layer) for layer in answer["by_layer"]} == {("name", "bytes")}
    assert {tuple(option) for option in answer["options"]} == {("title", "saves_bytes", "how")}


def test_a_run_of_the_same_command_begins_with_the_micro_batches_that_fit(tmp_path: Path) -> None:
    spec = RunSpec(("python", "train.py"), tmp_path / "state" / "runs" / "plan", tmp_path)
    parts = parts_to_begin_with(made(limit_mib=480))
    assert parts == -(-64 // made(limit_mib=480).micro_batch) > 1
    assert f"{parts} micro-batches" in remembered(spec, parts)
    run = RunSpec(("python", "train.py"), tmp_path / "state" / "runs" / "later", tmp_path)
    assert known_micro_batches.recall(run) == parts
    assert known_micro_batches.recall(replace(run, command=("python", "other.py"))) is None


def test_a_batch_that_nearly_fits_is_left_whole() -> None:
    near = made(limit_mib=made().host_bytes // MIB)
    assert (near.fits, parts_to_begin_with(near)) == (False, 0)


def test_in_words() -> None:
    text = as_text(made(limit_mib=700, asked=512), 100, colour=False)
    assert text.startswith("Batch 512 does not fit: it needs 1.")
    assert "micro-batch" in text
    assert "body (Linear)" in text
    assert "\033" not in text


def test_the_page_escapes_what_a_layer_is_called() -> None:
    page = plan_page(made(), ["python", "train.py", "--token", "secret123456"])
    assert "&lt;b&gt;head&lt;/b&gt;" in page
    assert "<b>head" not in page
    assert "secret123456" not in page


def test_a_line_that_was_cut_off_is_left_out_and_without_a_point_there_is_no_plan() -> None:
    assert lines_of('{"kind": "begun"}\n{"kind": "po') == [{"kind": "begun"}]
    assert measured(told()[:1]) is None
