"""Numbers of PyTorch loops that are not finite: noticed at their step, traced to their origin, gone on from; and what is told of
model, loss and layers. One process for each policy runs all loops."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from tests.inside.contract import run_script

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
STEP = 13  # the batch with the number 12 is the thirteenth
BAD_LOOPS = (
    "nan_rows", "nan_target", "log_of_zero", "two_optimizers", "division_by_zero", "root_of_zero", "logarithm_behind_where",
)  # fmt: skip
SPOILED = (*BAD_LOOPS[:-1], "rate_far_too_high")  # the choice hides what is not finite from the last one's loss


@cache
def _ran(policy: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.inside.torch_numbers", policy]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _told(policy: str, name: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in _ran(policy)[name]["told"] if event["kind"] == kind]


def _losses(policy: str, name: str) -> list[float]:
    return [float(value) for value in _ran(policy)[name]["losses"]]


def _incident(policy: str, name: str) -> dict[str, Any]:
    incidents = _told(policy, name, "numerics.non_finite")
    assert len(incidents) == 1
    return incidents[0]


@pytest.mark.parametrize("policy", ["advise", "protect"])
def test_no_look_of_ours_fails(policy: str) -> None:
    assert [(name, e) for name in _ran(policy) for e in _told(policy, name, "inside.failed")] == []


@pytest.mark.parametrize("policy", ["advise", "protect"])
@pytest.mark.parametrize("name", BAD_LOOPS)
def test_an_incident_is_told_once_at_its_own_step(policy: str, name: str) -> None:
    incident = _incident(policy, name)
    assert (incident["step"], incident["seen_at"], incident["reproduced"]) == (STEP, STEP, True)
    assert incident["before"]["losses"][-1][0] == STEP - 1 and incident["before"]["weights_finite"] is True


@pytest.mark.parametrize(
    ("name", "origin", "found", "rows"),
    [("nan_rows", "input", ("xb", "NaN"), [3, 9]), ("nan_target", "target", ("wanted", "Inf"), [5])],
)
def test_bad_rows_are_named_with_the_variable_that_holds_them(
    name: str, origin: str, found: tuple[str, str], rows: list[int]
) -> None:
    incident = _incident("advise", name)
    assert incident["origin"] == origin
    assert (incident["input"]["name"], incident["input"]["what"]) == found
    assert (incident["input"]["rows"], incident["input"]["row_count"]) == (rows, len(rows))


@pytest.mark.parametrize(
    ("name", "origin", "op", "values", "code"),
    [
        ("log_of_zero", "loss", "log", "log of 0.0", "return -torch.log("),
        ("division_by_zero", "forward", "div", "0.0 divided by 0.0", "/ x.std(0)"),
        ("root_of_zero", "backward", "sqrt", "the gradient of the square root of 0.0", "distance = torch.sqrt("),
        ("logarithm_behind_where", "backward", "log", "the gradient of log of 0.0", "p * torch.log(p)"),
        ("all_is_masked", "loss", "softmax", "a row that is -Inf throughout", "torch.softmax("),
    ],
)
def test_an_operation_is_named_with_its_values_and_the_users_own_line(
    name: str, origin: str, op: str, values: str, code: str
) -> None:
    incident = _incident("advise", name)
    assert (incident["origin"], incident["place"]["op"], incident["values"]) == (origin, op, values)
    assert incident["place"]["line"].startswith("torch_numbers.py:") and code in incident["place"]["code"]


def test_a_rate_that_is_far_too_high_shows_in_the_losses_before() -> None:
    incident = _incident("advise", "rate_far_too_high")
    losses = [value for _, value in incident["before"]["losses"] if isinstance(value, float)]
    assert incident["origin"] in ("forward", "loss") and " in float32" in incident["values"]
    assert losses[-1] > 1e6 * losses[0] and incident["before"]["rate"] == 2.0


@pytest.mark.parametrize("name", SPOILED)
def test_advise_changes_nothing(name: str) -> None:
    assert not _told("advise", name, "numerics.went_on")
    assert math.isnan(_losses("advise", name)[-1])


@pytest.mark.parametrize("name", SPOILED)
def test_protect_goes_on_to_a_finite_and_smaller_loss(name: str) -> None:
    losses = _losses("protect", name)
    assert [math.isfinite(value) for value in losses[-5:]] == [True] * 5
    assert min(losses[-5:]) < losses[0]
    how = {event["how"] for event in _told("protect", name, "numerics.went_on")}
    expected = {"rate_far_too_high": {"rolled-back", "rate-lowered"}}
    rows = {"rows-left-out"} if name in ("nan_rows", "nan_target") else {"batch-skipped"}
    assert how == expected.get(name, rows)


def test_infinity_that_a_saturated_unit_hides_from_the_loss_is_found_in_the_input() -> None:
    incident = _told("protect", "infinity_behind_tanh", "numerics.non_finite")[0]
    assert (incident["origin"], incident["seen_in"], incident["step"]) == ("input", "gradient", STEP)
    assert (incident["input"]["rows"], incident["input"]["columns"], incident["input"]["what"]) == ([4], [2], "Inf")
    assert [math.isfinite(value) for value in _losses("protect", "infinity_behind_tanh")] == [True] * 30


def test_a_loss_without_its_bad_rows_is_shown_to_the_script() -> None:
    assert [math.isfinite(value) for value in _losses("protect", "nan_rows")] == [True] * 30


def test_weights_that_are_bad_already_are_put_back_with_the_optimizer() -> None:
    (incident,) = _told("protect", "weights_are_spoiled", "numerics.non_finite")
    assert (incident["origin"], incident["step"], incident["seen_at"]) == ("weights", STEP - 1, STEP)
    assert incident["place"]["layer"] == "0"
    (went_on,) = _told("protect", "weights_are_spoiled", "numerics.went_on")
    assert (went_on["how"], went_on["step"]) == ("rolled-back", STEP) and went_on["lost_steps"] > 0
    losses = _losses("protect", "weights_are_spoiled")
    assert [math.isfinite(value) for value in losses[STEP:]] == [True] * (30 - STEP) and losses[-1] < losses[0]


def test_what_a_spoiled_slot_makes_of_the_weights_is_noticed_in_the_next_step() -> None:
    incident = _incident("advise", "slot_is_spoiled")
    assert (incident["origin"], incident["step"], incident["seen_at"]) == ("weights", STEP, STEP + 1)
    (went_on,) = _told("protect", "slot_is_spoiled", "numerics.went_on")
    assert went_on["how"] == "rolled-back"
    assert math.isfinite(_losses("protect", "slot_is_spoiled")[-1])


@pytest.mark.parametrize(
    ("name", "step"), [("statistics_take_in_what_is_dropped", STEP), ("statistics_before_an_evaluation", 30)]
)
def test_statistics_that_took_in_a_dropped_batch_are_told_at_its_step_and_put_back(name: str, step: int) -> None:
    for policy in ("advise", "protect"):
        incident = _incident(policy, name)
        assert (incident["step"], incident["seen_in"], incident["origin"]) == (step, "statistics", "input")
        assert (incident["input"]["rows"], incident["input"]["columns"]) == ([3], [1])
        assert "1.running_mean" in incident["values"]
    assert math.isnan(_losses("advise", name)[-1]) and not _told("advise", name, "numerics.went_on")
    assert math.isfinite(_losses("protect", name)[-1])
    assert _losses("protect", name)[:-1] == _losses("advise", name)[:-1], "the training itself is as it was"


@pytest.mark.parametrize("policy", ["advise", "protect"])
def test_buffers_may_hold_infinities_and_nan_on_purpose(policy: str) -> None:
    assert not _told(policy, "buffers_without_numbers_on_purpose", "numerics.non_finite")


@pytest.mark.parametrize(
    ("name", "left_out", "unregistered"),
    [
        ("layers_in_a_plain_list", None, ["hidden[0].weight", "hidden[0].bias", "hidden[1].weight", "hidden[1].bias"]),
        ("a_teacher_hidden_in_a_list", None, None),
        ("listed_layers_that_are_trained", None, None),
        ("head_alone", ["0.weight", "0.bias"], None),
        ("decoder_alone", ["0.weight", "0.bias", "2.weight", "2.bias"], None),
        ("head_put_there_too_late", ["0.weight", "0.bias", "2.weight", "2.bias"], None),
        ("two_optimizers", None, None),
        ("a_teacher_and_a_measure", None, None),
    ],
)
def test_parameters_that_nobody_trains_are_told_after_some_steps(name: str, left_out: Any, unregistered: Any) -> None:
    samples = _told("advise", name, "numerics.health")
    assert [sample.keys() & {"left_out", "unregistered"} for sample in samples[:6]] == [set()] * 6
    for key, expected in (("left_out", left_out), ("unregistered", unregistered)):
        found = samples[-1].get(key)
        assert (sorted(found) if found else None) == (sorted(expected) if expected else None)


def test_a_run_that_is_never_finite_is_stopped_after_five_times() -> None:
    assert _ran("protect")["never_finite"]["error"].startswith("NumbersGoneBad: ")
    (gave_up,) = _told("protect", "never_finite", "numerics.gave_up")
    assert gave_up["times"] == 5 and len(_told("protect", "never_finite", "numerics.went_on")) == 5


@pytest.mark.parametrize("policy", ["advise", "protect"])
@pytest.mark.parametrize("name", ["script_drops_it", "healthy_classifier", "softmax_before_cross_entropy"])
def test_what_the_script_handles_itself_is_no_incident(policy: str, name: str) -> None:
    assert not _told(policy, name, "numerics.non_finite") and not _told(policy, name, "numerics.went_on")


def test_healthy_losses_are_the_same_under_both_policies() -> None:
    assert _losses("advise", "healthy_classifier") == _losses("protect", "healthy_classifier")


def test_the_setup_is_told_once_with_what_the_first_batch_shows() -> None:
    (setup,) = _told("advise", "softmax_before_cross_entropy", "numerics.setup")
    assert setup["loss"] == {**setup["loss"], "name": "cross_entropy", "family": "sparse", "from_logits": True}
    assert setup["last"] == {"layer": "2", "kind": "Linear", "units": 2, "activation": "softmax"}
    assert setup["output"]["rows_sum_to_1"] and setup["output"]["between_0_and_1"]
    assert setup["targets"]["integers"] and setup["targets"]["distinct"] == 2
    assert setup["inputs"][0]["max"] > 500 and setup["inputs"][0]["columns"]["count"] == 6
    assert setup["weights"]["frozen_names"] == ["0.weight"] and setup["weights"]["zero"] == ["2.weight"]
    optimizer = setup["optimizer"]
    assert (optimizer["name"], optimizer["rate"], optimizer["momentum"]) == ("SGD", 0.5, 0.9)
    assert optimizer["not_given"] == ["0.bias", "2.bias"]


def test_health_is_sampled_by_layer_with_the_gradient_before_it_was_clipped() -> None:
    samples = _told("advise", "healthy_classifier", "numerics.health")
    assert [sample["step"] for sample in samples][:3] == [1, 2, 3]
    first = samples[0]
    assert [group[0] for group in first["groups"]] == ["0", "2", "4"]
    norm = math.sqrt(sum(group[2] ** 2 for group in first["groups"]))
    assert norm > 0.2  # the script clips to 0.1
    assert [group[3] > 0 for group in first["groups"]] == [True] * 3  # each layer moved
    assert first["classes"][:1] == [2] and 0 <= first["correct"] <= 1
    assert first["units"][0][:2] == ["0", "relu"]
    (setup,) = _told("advise", "healthy_classifier", "numerics.setup")
    assert setup["optimizer"]["clips"] is True and setup["normalised"] is True


def test_on_a_gpu_what_is_read_late_tells_the_step_at_which_it_began() -> None:
    """With tensors of the CPU, which are read at once: what is gathered of each step is the same."""
    import torch

    from holdfast.inside.torch.numerics.late_losses import LateLosses
    from holdfast.inside.torch.numerics.late_vector import LateVectors

    incidents: list[Any] = []

    class Notices:
        losses: ClassVar[list[tuple[int, float]]] = []
        recorder = SimpleNamespace(steps=20)
        telemetry = SimpleNamespace(scales=False)

        def told_late(self, facts: Any, scene: Any) -> None:
            incidents.append(facts)

    Notices.torch = torch  # type: ignore[attr-defined]
    late = LateLosses(Notices(), LateVectors(torch))  # type: ignore[arg-type]
    for step, value in enumerate([1.0, 0.9, math.inf, math.nan], start=1):
        late.loss(step, torch.tensor(value), [])
    late._read()
    assert [(facts["step"], facts["seen_at"], facts["seen_in"]) for facts in incidents] == [(3, 21, "loss")]
    assert [step for step, _ in Notices.losses] == [1, 2]


def test_under_holdfast_run_the_rows_are_left_out_and_said(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    ran = run_script(script, tmp_path)
    assert ran.exit_code == 0
    assert [math.isfinite(value) for value in ran.report["losses"]] == [True] * 8
    (incident,) = ran.told("numerics.non_finite")
    assert (incident["step"], incident["origin"], incident["input"]["rows"]) == (4, "input", [4, 5])
    assert (incident["input"]["indices"], incident["input"]["source_clean"]) == ([100, 101], False)
    (went_on,) = ran.told("numerics.went_on")
    assert went_on["how"] == "rows-left-out"
    assert not ran.told("inside.failed")


SCRIPT = """
import json, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x.sum(1) > 0).long()
x[100, 3] = x[101, 3] = float("nan")
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion, losses = nn.CrossEntropyLoss(), []
for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32):
    optimizer.zero_grad()
    loss = criterion(model(xb), yb)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(json.dumps({"losses": losses}))
"""


def test_a_bad_loss_among_many_plain_steps_has_its_own_update_left_out(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LONG)
    ran = run_script(script, tmp_path)
    assert ran.exit_code == 0 and math.isfinite(ran.report["loss"])
    (incident,) = ran.told("numerics.non_finite")
    (went_on,) = ran.told("numerics.went_on")
    assert (incident["step"], went_on["step"], went_on["how"]) == (1501, 1501, "batch-skipped")


LONG = """
import json, torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for number in range(1600):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean() / (0.0 if number == 1500 else 1.0)
    loss.backward()
    optimizer.step()
print(json.dumps({"loss": loss.item()}))
"""


def test_gradients_that_nobody_clears_are_told_and_those_that_add_up_on_purpose_are_not() -> None:
    def carried(name: str) -> list[float]:
        return [event["carried"] for event in _told("advise", name, "numerics.health") if "carried" in event]

    assert min(carried("gradients_are_not_cleared")[1:]) > 0.3
    assert max(carried("gradients_add_up_on_purpose")) == 0.0


def test_layers_with_nothing_between_a_difference_of_other_shape_and_a_softmax_over_rows_are_told() -> None:
    linear, rows, healthy = (
        _told("advise", name, "numerics.setup")[0]
        for name in ("nothing_between_the_layers", "softmax_over_the_rows", "gradients_are_not_cleared")
    )
    assert (linear["linear"], linear["loss"]["compared"]) == (["0", "2"], [8, 8])
    assert rows["loss"]["over_rows"]
    assert (rows["linear"], healthy["linear"], healthy["loss"].get("over_rows")) == ([], [], None)


def test_gradients_made_by_autograd_are_looked_at_and_each_bad_update_is_left_out_and_told() -> None:
    name = "gradients_by_autograd_grad"
    assert [event["step"] for event in _told("protect", name, "numerics.went_on")] == [13, 25]
    assert math.isfinite(sum(_losses("protect", name)))
    assert not math.isfinite(_losses("advise", name)[-1])


def test_settings_of_an_optimizer_are_numbers_or_nothing() -> None:
    import torch

    from holdfast.inside.torch.numerics.setup_facts import setting

    weights = [torch.nn.Parameter(torch.zeros(2, 2))]
    adam, adafactor = (kind(weights).param_groups[0] for kind in (torch.optim.Adam, torch.optim.Adafactor))
    assert (setting(adam, "eps"), setting(adam, "momentum")) == (1e-8, None)
    assert isinstance(adafactor["eps"], tuple)
    assert (setting(adafactor, "eps"), setting(adafactor, "lr")) == (None, 0.01)
