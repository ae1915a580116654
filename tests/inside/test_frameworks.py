"""The table of frameworks, and that everybody goes by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.inside.frameworks import BY_MODULE, FRAMEWORKS, IMPORTS, TRAINERS

INSIDE = Path(holdfast.__file__).parent / "inside"
WAITS_FOR = """
import sys
loaded = sorted(sys.modules)
waiting = [one for one in sys.meta_path if type(one).__name__ == "_Waiting"]
print(*(sorted(waiting[0].frameworks) if waiting else ()))
print(*loaded)
"""


@pytest.mark.parametrize("one", [one for one in FRAMEWORKS if one.counts_steps], ids=lambda one: one.module)
def test_a_framework_whose_steps_are_counted_has_its_folder(one: object) -> None:
    assert (INSIDE / one.module / "adapter.py").is_file()  # type: ignore[attr-defined]


def test_each_trainer_has_its_file_in_the_folder_of_its_framework() -> None:
    assert TRAINERS
    for framework, file in TRAINERS.values():
        assert (INSIDE / framework / f"{file}.py").is_file()


def test_remedies_are_those_of_a_framework_that_is_there() -> None:
    assert {one.remedies_of for one in FRAMEWORKS} <= set(BY_MODULE)
    assert BY_MODULE["keras"].remedies_of == "tensorflow"


def test_the_bootstrap_waits_for_what_the_table_says_and_imports_nothing_for_it(tmp_path: Path) -> None:
    names, loaded = _bootstrapped(str(tmp_path))
    assert names == sorted(IMPORTS)
    without, loaded_without = _bootstrapped("")
    assert without == []
    assert set(loaded) - set(loaded_without) == {"faulthandler", "atexit"}, "for stacks on demand"
    assert {"faulthandler", "atexit"} <= set(sys.builtin_module_names), "no file is read for them"


def _bootstrapped(channel: str) -> list[list[str]]:
    environment = {**os.environ, "PYTHONPATH": str(INSIDE / "bootstrap"), "HOLDFAST_CHANNEL": channel}
    printed = subprocess.run(
        [sys.executable, "-c", WAITS_FOR], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return [line.split(" ") if line else [] for line in printed.stdout.splitlines()]
