"""The tables of rescues, as far as they can be wrong without running any."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from lab.oom import on_tensorflow_gpu, state, tensorflow_runs
from lab.oom.tensorflow_cases import CASES
from lab.oom.tensorflow_runs import Step, Trained, resumed_step, seconds_lost

SCRIPTS = sorted((Path(__file__).parents[1] / "gpu").glob("*.sh"))


def names_in(script: Path, mapping: str) -> set[str]:
    """Keys of a dictionary at the top of a script, which is not imported: it would train."""
    for node in ast.parse(script.read_text()).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Dict)
            and ast.unparse(node.targets[0]) == mapping
        ):
            return {str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)}
    raise AssertionError(f"{script} has no {mapping}")


def steps(*lines: tuple[str, int, float, int]) -> list[Step]:
    return [Step(*line) for line in lines]


def run_of(found: list[Step]) -> Trained:
    return Trained(0, Path("result"), Path("state"), found, "", "")


def test_each_case_on_a_gpu_has_a_script_that_knows_its_variant() -> None:
    models = tensorflow_runs.SCRIPT.with_name("gpu_tensorflow_models.py")
    known = names_in(tensorflow_runs.SCRIPT, "VARIANTS") | names_in(models, "MODELS")
    assert {case.variant for case in CASES} | {"steady"} == known
    assert len(set(on_tensorflow_gpu.names())) == len(on_tensorflow_gpu.names())


def test_each_model_with_much_state_is_in_its_script() -> None:
    assert {model.name for model in state.MODELS} == names_in(state.SCRIPT, "MODELS")


def test_seconds_lost_are_from_the_failing_steps_beginning_to_the_next_that_finished() -> None:
    found = steps(
        ("begin", 0, 1.0, 7), ("end", 0, 2.0, 7), ("begin", 1, 3.0, 7), ("begin", 1, 9.0, 8), ("end", 1, 11.5, 8)
    )  # fmt: skip
    assert seconds_lost(found, [4.0, 10.0]) == 8.5


def test_no_seconds_are_lost_without_trouble_and_none_are_told_where_no_step_finished() -> None:
    found = steps(("begin", 0, 1.0, 7), ("end", 0, 2.0, 7), ("begin", 1, 3.0, 7))
    assert seconds_lost(found, []) is None
    assert seconds_lost(found, [4.0]) is None


def test_a_second_attempt_that_begins_anew_has_not_gone_on() -> None:
    first = [("begin", number, float(number), 7) for number in range(5)]
    assert resumed_step(run_of(steps(*first, *[("begin", number, 9.0 + number, 8) for number in range(6)]))) is None
    assert resumed_step(run_of(steps(*first, *[("begin", number, 9.0 + number, 8) for number in range(3, 6)]))) == 3


def test_a_second_attempt_that_leaves_a_step_out_has_not_gone_on() -> None:
    assert resumed_step(run_of(steps(("begin", 0, 0.0, 7), ("begin", 3, 9.0, 8), ("begin", 5, 10.0, 8)))) is None


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_a_set_up_script_without_arguments_says_how_it_is_used(script: Path) -> None:
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: {script.name}")


def test_the_cases_are_listed_without_running_any() -> None:
    done = subprocess.run([sys.executable, "-m", "lab.oom", "--list"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == on_tensorflow_gpu.names()


def test_an_unknown_case_is_named() -> None:
    assert on_tensorflow_gpu.why_not(["no-such-case"]).startswith("no such case: no-such-case;")
