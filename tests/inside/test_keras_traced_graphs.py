"""A step in pieces takes as few graphs as there is memory for: a graph takes more of it than a small step does."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow"),
    pytest.mark.timeout(300),
]
ROOT = Path(__file__).parents[2]
CUT = ("foreseen", "killed once", "killed twice", "killed late", "eager")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.inside.keras_graphs"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("case", CUT)
def test_in_pieces_no_graph_of_a_whole_batch_stays(case: str, found: dict[str, Any]) -> None:
    """Not for the last, smaller batch of an epoch either, nor for the next epoch."""
    assert "rescue.foreseen" in [kind for kind, _ in found[case]["told"]], (
        "it was not in pieces: the test proves nothing"
    )
    assert found[case]["whole_graphs"] == 0
    assert found["healthy"]["whole_graphs"] > 0


@pytest.mark.parametrize("case", CUT)
def test_the_losses_are_those_of_the_whole_batches(case: str, found: dict[str, Any]) -> None:
    healthy = found["healthy"]["history"]
    assert "loss" in healthy
    for name, values in healthy.items():
        assert found[case]["history"][name] == pytest.approx(values, rel=1e-5)
    assert "inside.failed" not in [kind for kind, _ in found[case]["told"]]


def test_the_second_kill_before_a_checkpoint_leaves_no_graph_at_all_and_says_so(found: dict[str, Any]) -> None:
    assert [found[case]["graphs"] for case in (*CUT, "a budget")] == [
        "slices", "slices", "none", "slices", "slices", "all",
    ]  # fmt: skip
    said = {case: [data["text"] for kind, data in found[case]["told"] if kind == "rescue.disclosed"] for case in CUT}
    assert ["without a compiled graph" in text for text in said.pop("killed twice")] == [True]
    assert not any(said.values())


def test_a_first_step_has_begun_before_it_is_over(found: dict[str, Any]) -> None:
    """Otherwise a process that is killed in it would not be started again."""
    assert found["healthy"]["phases"][0] == "compile"
    assert found["eager"]["phases"][0] == "train"


def test_what_fits_is_left_alone(found: dict[str, Any]) -> None:
    assert found["healthy"]["told"] == found["a budget"]["told"] == []
    assert found["healthy"]["history"] == found["a budget"]["history"]


def test_a_graph_that_was_let_go_is_gone_and_can_be_had_again(found: dict[str, Any]) -> None:
    assert found["let go"] == {"gone": True, "again": 1, "result": 6.0}


@pytest.mark.parametrize(
    "case", ["rows of a table", "gradients changed by the step", "weights changed after the update"]
)
def test_an_update_that_xla_compiles_is_that_of_the_whole_batch(case: str, found: dict[str, Any]) -> None:
    """As on a card, where there is no room for an update's temporaries."""
    assert found["by xla"][case] < 1e-8


def test_no_piece_has_a_tensor_of_more_elements_than_a_kernel_can_count(found: dict[str, Any]) -> None:
    assert found["most rows"] == (2**31 - 1) // 4096


def test_what_a_pipeline_keeps_is_read_off_it(found: dict[str, Any]) -> None:
    row = 64 * 64 * 3 * 4 + 8
    assert sorted(found["kept"]) == [["cache", 5000, row], ["prefetch", 7, 32 * row], ["shuffle", 5000, row]]


def test_what_a_pipeline_does_to_each_row_is_read_from_its_functions(found: dict[str, Any]) -> None:
    told = found["pipelines"]
    does = {
        name: [[one["call"], one["does"], one["parallel"]] for one in pipeline["calls"]]
        for name, pipeline in told.items()
    }
    assert does == {
        "images": [["map", ["read", "decode", "resize", "augment"], False]],
        "python": [["map", ["python"], True]],
        "generator": [["from_generator", ["python"], False]],
        "records": [["tfrecord", ["read"], False], ["map", ["decode"], True]],
        "arrays": [],
    }
    assert [name for name, pipeline in told.items() if pipeline["ahead"]] == ["python"]
    (images,) = told["images"]["calls"]
    assert images["function"] == "load" and images["place"].rpartition(":")[0].endswith("keras_graphs.py")
    assert images["operations"] == ["DecodeJpeg", "RandomUniform", "ReadFile", "ResizeBilinear"]
