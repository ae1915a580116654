"""A word after `why` is a run or a log: the one that is there, and a run first where both are."""

from __future__ import annotations

import json
import subprocess

from tests.workplace import HOLDFAST, Workplace

LOG = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    x\nIndexError: Target 12 is out of bounds.\n'


def _why(workplace: Workplace, word: str) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [*HOLDFAST, "why", word, "--json"], cwd=workplace.path, capture_output=True, timeout=60, check=False
    )
    return done.returncode, json.loads(done.stdout)


def test_a_name_that_both_have_is_the_run_and_a_path_is_the_file(workplace: Workplace) -> None:
    subprocess.run([*HOLDFAST, "run", "--name", "base", "true"], cwd=workplace.path, check=True, timeout=60)
    (workplace.path / "base").write_text(LOG)
    (workplace.path / "bas").write_text(LOG)
    code, answer = _why(workplace, "base")
    assert code == 0 and answer["outcome"] == "completed" and str(answer["run"]).endswith("-base")
    code, answer = _why(workplace, "./base")
    assert code == 0 and answer["run"] == "./base" and answer["cause"]["id"] == "label-out-of-range"  # type: ignore[index]
    assert _why(workplace, "bas")[1]["run"] == "bas"
