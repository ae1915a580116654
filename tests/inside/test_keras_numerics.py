"""Numbers that go wrong in Keras: noticed at the exact step, traced to their origin, gone on from.

One process trains every case (`keras_numerics.py`); the tests read what it told.
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow"),
    pytest.mark.timeout(600),
]

ROOT = Path(__file__).parents[2]
LOOPS = ("compiled_loop", "eager_loop", "loop_with_a_generator")
HEALTHY = ("normalised", "missing_values", "half_precision", "speaking", "embedded", "ignored_class", "drawing")
ORIGINS = {  # by case: the step, where it was seen, where it came from
    "hidden_rows": (5, "weights", "input"),
    "inf_column": (5, "loss", "input"),
    "bad_targets": (7, "loss", "target"),
    "log_of_zero": (1, "loss", "loss"),
    "root_gradient": (3, "weights", "backward"),
    "own_layer": (13, "loss", "forward"),
    "own_step": (9, "loss", "loss"),
}
CASES = (
    *HEALTHY, *LOOPS, "loop_with_bad_rows", "loop_with_own_loss", "eager_loop_with_bad_rows", "loop_with_bad_rows:protect",
    *ORIGINS, "shuffled_rows", "augmented", "terminates_on_nan", "rate_too_high",
    "hidden_rows:protect", "bad_targets:protect", "root_gradient:protect", "bad_average:protect", "rate_too_high:protect",
    "terminates_on_nan:protect", "always_bad:protect", "steep:protect", "broken_sensor", "broken_sensor:protect",
    "slot_alone", "metric_alone", "metric_alone:protect",
    "metric_then_rows:protect", "head_alone", "slipped_label", "slipped_label:protect", "class_too_few:protect",
    "missing_in_every_batch", "missing_in_every_batch:protect", "eager_loop_that_cuts_off", "eager_loop_that_spreads",
    "sorted_by_class",
)  # fmt: skip


@functools.cache
def found() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.inside.keras_numerics", *CASES],
        capture_output=True, text=True, cwd=ROOT, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def told(case: str, kind: str) -> list[dict[str, Any]]:
    return [data for name, data in found()[case]["told"] if name == kind]


def incident(case: str) -> dict[str, Any]:
    return told(case, "numerics.non_finite")[0]


def test_nothing_of_ours_failed() -> None:
    assert [(case, told(case, "inside.failed")) for case in CASES if told(case, "inside.failed")] == []


@pytest.mark.parametrize("case", HEALTHY)
def test_a_healthy_training_is_the_same_bit_for_bit_and_nothing_is_told_of_it(case: str) -> None:
    assert found()[case]["same"]
    assert told(case, "numerics.non_finite") == []
    assert len(told(case, "numerics.setup")) == 1
    assert len(told(case, "numerics.epoch")) == 2
    assert len(told(case, "numerics.health")) >= 3


@pytest.mark.parametrize("case", LOOPS)
def test_a_healthy_loop_of_the_users_own_is_left_as_it_was(case: str) -> None:
    assert found()[case]["same"]
    assert told(case, "numerics.non_finite") == []


def test_loops_of_the_users_own_are_traced_as_well() -> None:
    rows = incident("loop_with_bad_rows")
    assert (rows["step"], rows["seen_in"], rows["origin"], rows["reproduced"]) == (5, "weights", "input", True)
    assert (rows["input"]["name"], rows["input"]["rows"]) == ("images", [6, 11, 13])
    own = incident("loop_with_own_loss")
    assert (own["step"], own["origin"], own["place"]["op"]) == (1, "loss", "Sqrt")
    assert own["values"].startswith("square root of -") and "tf.sqrt" in own["place"]["code"]
    eager = incident("eager_loop_with_bad_rows")
    assert (eager["step"], eager["seen_in"], eager["origin"], eager["reproduced"]) == (5, "loss", "input", None)
    assert not found()["loop_with_bad_rows"]["finite"]
    assert found()["loop_with_bad_rows:protect"]["finite"]


@pytest.mark.parametrize("case", ORIGINS)
def test_the_exact_step_and_its_origin_are_told_once(case: str) -> None:
    assert len(told(case, "numerics.non_finite")) == 1
    fact = incident(case)
    assert (fact["step"], fact["seen_in"], fact["origin"]) == ORIGINS[case]
    assert fact["reproduced"] is True


def test_rows_columns_and_their_place_in_the_data_are_named() -> None:
    bad = incident("hidden_rows")["input"]
    assert bad == {
        "name": "x", "rows": [6, 11, 13], "row_count": 3, "columns": [2], "what": "NaN", "indices": [70, 75, 77],
        "source_clean": False,
    }  # fmt: skip
    column = incident("inf_column")["input"]
    assert (column["columns"], column["row_count"], column["what"]) == ([4], 16, "Inf")
    assert set(incident("shuffled_rows")["input"]["indices"]) <= {70, 75, 77}


def test_rows_that_are_finite_and_out_of_all_proportion_are_named_too() -> None:
    fact = incident("broken_sensor")
    assert fact["step"] == 5 and "squared" in fact["values"]
    assert fact["input"] == {
        "name": "x", "rows": [6, 11, 13], "row_count": 3, "columns": [2], "what": "1e+30", "indices": [70, 75, 77],
        "source_clean": False,
    }  # fmt: skip
    losses = found()["broken_sensor:protect"]["history"]["loss"]
    assert all(math.isfinite(loss) for loss in losses) and losses[1] < losses[0]


def test_what_is_in_a_slot_or_in_a_metric_alone_is_noticed_at_its_step() -> None:
    slot = incident("slot_alone")
    assert (slot["step"], slot["seen_in"], slot["origin"]) == (6, "slot", "update")
    assert slot["place"]["op"] == "Log" and "ops.log" in slot["place"]["code"]
    metric = incident("metric_alone")
    assert (metric["step"], metric["seen_in"], metric["values"]) == (4, "metric", "log of 0.0")
    assert metric["had_numbers"], "in the three steps before"
    for case in ("slot_alone", "metric_alone"):
        assert [math.isfinite(loss) for loss in found()[case]["history"]["loss"]] == [True, True]
    assert told("metric_alone:protect", "numerics.went_on") == [], "no weight is touched by it"


def test_what_comes_after_an_undefined_metric_is_noticed_and_sampled_all_the_same() -> None:
    metric, rows = told("metric_then_rows:protect", "numerics.non_finite")
    assert (metric["step"], metric["seen_in"], metric["had_numbers"]) == (1, "metric", False)
    assert (rows["step"], rows["seen_in"], rows["origin"]) == (5, "weights", "input")
    assert [one["how"] for one in told("metric_then_rows:protect", "numerics.went_on")] == ["rows-left-out"] * 2
    assert len(told("metric_then_rows:protect", "numerics.health")) >= 3


def test_variables_that_the_tape_was_not_asked_for_are_told_once_they_stayed_the_same() -> None:
    samples = told("head_alone", "numerics.health")
    names = [sample.get("left_out") for sample in samples]
    assert not any(names[:5]) and names[-1] == ["body/dense/kernel", "body/dense/bias"]
    assert not any(sample.get("left_out") for sample in told("compiled_loop", "numerics.health"))


def test_an_eager_loop_is_sampled_by_what_its_own_calls_gave() -> None:
    (setup,) = told("eager_loop_that_cuts_off", "numerics.setup")
    assert (setup["loss"]["family"], setup["last"]["layer"], setup["output"]["shape"][1:]) == (
        "regression",
        "head",
        [1],
    )
    samples = told("eager_loop_that_cuts_off", "numerics.health")
    assert len(samples) >= 4
    for one in samples:
        of_body, of_head = one["groups"]
        assert of_body[2] is None and of_head[2] > 0.0 and of_head[3] > 0.0
    assert len(told("eager_loop", "numerics.health")) >= 3
    (spread,) = told("eager_loop_that_spreads", "numerics.setup")
    assert spread["inputs"][0]["shape"] == [16, 6]
    assert (spread["loss"]["compared"], spread["last"]["units"]) == ([16, 16], 1)


def test_a_step_that_draws_at_random_is_sampled_with_gradients_and_what_it_leaves_out() -> None:
    samples = told("drawing", "numerics.health")
    assert all(group[2] is None or group[2] > 0.0 for one in samples for group in one["groups"])
    assert [name.rsplit("/", 1)[1] for name in samples[-1]["left_out"]] == ["kernel", "bias"]


def test_classes_that_are_held_out_are_counted_once() -> None:
    (event,) = told("sorted_by_class", "numerics.held_out")
    assert [row[0] for row in event["counts"]] == [0, 1, 2, 3]
    assert event["counts"][0][2] == 0 and event["counts"][3][2] > 50


def test_a_clean_source_and_a_bad_batch_are_told_apart() -> None:
    assert incident("augmented")["input"]["source_clean"] is True


def test_the_users_own_line_and_the_values_are_named() -> None:
    at = incident("log_of_zero")["place"]
    assert at["op"] == "Log" and at["line"].startswith("keras_numerics.py:") and "ops.log" in at["code"]
    assert incident("log_of_zero")["values"] == "log of 0.0"
    at = incident("root_gradient")["place"]
    assert at["op"] == "Sqrt" and "ops.sqrt" in at["code"]
    at = incident("own_layer")["place"]
    assert (at["layer"], at["op"]) == ("halving", "RealDiv") and "x / ops.sum" in at["code"]
    assert incident("own_layer")["values"] == "0.0 divided by 0.0"
    assert incident("own_step")["values"].startswith("exp of 19")


def test_what_was_before_is_told() -> None:
    before = incident("rate_too_high")["before"]
    losses = [loss for _, loss in before["losses"] if isinstance(loss, float)]
    assert losses[-1] > 1e6 * losses[0]
    assert before["rate"] == 50.0 and before["weights_finite"]


def test_under_protect_bad_rows_are_left_out_and_all_else_is_trained() -> None:
    for case, rows in (("hidden_rows:protect", 3), ("bad_targets:protect", 1)):
        went = told(case, "numerics.went_on")
        assert [one["how"] for one in went] == ["rows-left-out"] * 2, "once in each epoch"
        assert f"{rows} of 16 rows" in went[0]["text"]
        losses = found()[case]["history"]["loss"]
        assert all(math.isfinite(loss) for loss in losses) and losses[1] < losses[0]


def test_under_protect_a_batch_is_left_out_or_the_rate_lowered() -> None:
    assert told("root_gradient:protect", "numerics.went_on")[0]["how"] == "rows-left-out"
    assert told("bad_average:protect", "numerics.went_on")[0]["how"] == "batch-skipped"
    assert told("rate_too_high:protect", "numerics.went_on")[0]["how"] == "rate-lowered"
    assert [one["how"] for one in told("steep:protect", "numerics.went_on")] == ["clipped"]
    for case in ("root_gradient:protect", "bad_average:protect", "rate_too_high:protect", "steep:protect"):
        losses = found()[case]["history"]["loss"]
        assert all(math.isfinite(loss) for loss in losses) and losses[-1] <= losses[0]


def test_a_users_terminate_on_nan_sees_what_is_not_mended_and_only_that() -> None:
    assert len(found()["terminates_on_nan"]["history"]["loss"]) == 1
    assert len(found()["terminates_on_nan:protect"]["history"]["loss"]) == 2


def test_after_too_many_times_the_run_is_stopped() -> None:
    assert found()["always_bad:protect"]["ended"].startswith("NumbersGoneBad: holdfast: ")
    assert len(told("always_bad:protect", "numerics.went_on")) == 5
    assert len(told("always_bad:protect", "numerics.gave_up")) == 1


def test_a_row_with_a_label_that_does_not_fit_is_left_out_before_the_step_in_every_epoch() -> None:
    bad = told("slipped_label:protect", "data.bad_labels")[0]
    assert (bad["step"], bad["rows"], bad["indices"], bad["values"], bad["classes"]) == (5, [6], [70], [17], 4)
    left_out = told("slipped_label:protect", "numerics.went_on")
    assert len(left_out) == len(found()["slipped_label:protect"]["history"]["loss"])
    assert found()["slipped_label:protect"]["ended"] is None


def test_under_advise_it_is_told_and_the_run_ends_with_its_own_error() -> None:
    assert told("slipped_label", "data.bad_labels") and not told("slipped_label", "numerics.went_on")
    assert "label value of 17" in found()["slipped_label"]["ended"]


def test_a_class_that_the_model_does_not_know_is_not_left_out() -> None:
    assert "label value of 4" in found()["class_too_few:protect"]["ended"]
    assert told("class_too_few:protect", "data.bad_labels")


def test_values_that_are_missing_in_every_batch_are_imputed_and_the_run_goes_on() -> None:
    case = found()["missing_in_every_batch:protect"]
    (went_on,) = told("missing_in_every_batch:protect", "numerics.went_on")
    assert went_on["how"] == "values-imputed" and went_on["step"] == 1
    assert case["ended"] is None and all(math.isfinite(loss) for loss in case["history"]["loss"])
    assert case["history"]["loss"][-1] < case["history"]["loss"][0]
    assert not told("missing_in_every_batch", "numerics.went_on")
