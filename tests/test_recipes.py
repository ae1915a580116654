"""The recipes run, and do what they say better than the usual way does."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "examples/recipes"
PLAIN = (
    "clean_non_finite",
    "nvidia_smi_fields",
    "chunked_with_dask",
    "threads_that_share_data",
    "gpu_memory_per_epoch",
)
ON_TENSORFLOW = (
    "accumulate_and_clip_keras", "tf_function_and_memory", "mixed_precision_keras", "catch_resource_exhausted", "small_model",
)  # fmt: skip
# In one process for each kind: importing a framework is most of the time they take.
RUN = """
import json, os, runpy, sys
told = {}
for path in sys.argv[1:]:
    told[os.path.basename(path)[:-3]] = runpy.run_path(path)["main"]()
print(json.dumps(told))
"""


def results_of(names: tuple[str, ...]) -> dict[str, Any]:
    paths = [str(RECIPES / f"{name}.py") for name in names]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *paths], capture_output=True, text=True, check=False, timeout=280, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_each_recipe_says_what_holdfast_does_without_it_and_is_run_here() -> None:
    found = {path.stem: ast.get_docstring(ast.parse(path.read_text())) or "" for path in RECIPES.glob("*.py")}
    assert set(found) == {*PLAIN, *ON_TENSORFLOW}
    assert [name for name, text in found.items() if "Holdfast without this recipe: " not in text] == []


def test_recipes_without_tensorflow_do_what_they_say() -> None:
    for package in ("torch", "dask", "numpy"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    told = results_of(PLAIN)
    cleaned = told["clean_non_finite"]
    assert cleaned["left"] == 0 < cleaned["left_by_the_usual_way"] and cleaned["replaced"] == [[3, 0], [7, 1], [9, 1]]
    assert told["nvidia_smi_fields"]["cards"][0]["memory.used"].isdigit()
    dask = told["chunked_with_dask"]
    assert dask["blocks_computed_for_50_rows_one_by_one"] == 50 and dask["rows"] == [600, 600]
    assert dask["blocks_computed_for_all_rows"] == dask["blocks_computed_by_holdfast_data"] == 6
    assert told["threads_that_share_data"] == {"batches": 2000, "each_once": True, "error_of_a_thread": "TypeError"}
    memory = told["gpu_memory_per_epoch"]
    assert (
        all((one is None) == (memory["device"] == "cpu") for one in memory["per_epoch"])
        and len(memory["per_epoch"]) == 2
    )


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow and Keras")
@pytest.mark.timeout(300)
def test_recipes_on_tensorflow_do_what_they_say() -> None:
    told = results_of(ON_TENSORFLOW)
    accumulated = told["accumulate_and_clip_keras"]
    assert accumulated["parts_differ_by"] < 1e-5 and accumulated["clipnorm_differs_by"] > 1e-3
    assert told["tf_function_and_memory"] == {
        "traces_with_python_numbers": 5, "traces_with_tensors": 1, "traces_with_a_signature": 1,
        "graph_is_kept": True, "graph_is_gone_with_the_function": True,
    }  # fmt: skip
    mixed = told["mixed_precision_keras"]
    assert (mixed["weights"], mixed["computes_in"], mixed["output"]) == ("float32", "float16", "float32")
    assert mixed["optimizer"] == "LossScaleOptimizer" and mixed["loss_is_finite"]
    assert (
        told["catch_resource_exhausted"]["parts"] == 4
        and told["catch_resource_exhausted"]["gradients_differ_by"] < 1e-5
    )
    small = told["small_model"]
    assert small["quantised"]["bytes"] < 0.4 * small["plain"]["bytes"] and small["quantised"]["error"] < 0.05
    assert small["pruned"]["bytes"] > 0.9 * small["plain"]["bytes"]
    assert small["pruned"]["compressed_bytes"] < 0.5 * small["plain"]["compressed_bytes"]
    assert small["quantised"]["tensors_bytes"] < small["plain"]["tensors_bytes"]
