"""What differs in the script's process from one started without Holdfast, under each policy: the list in README.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast.inside.stacks import ASK, STANDING
from tests.workplace import Workplace

TELLS = """
import json, os, signal, sys
import jax
caught = int(next(line for line in open("/proc/self/status") if line.startswith("SigCgt")).split()[1], 16)
told = {
    "environment": dict(os.environ),
    "handled": [number for number in range(1, 65) if caught >> (number - 1) & 1],
    "path": sys.path,
    "finders": [type(finder).__name__ for finder in sys.meta_path if not isinstance(finder, type)],
    "modules": sorted(name.split(".")[0] for name in sys.modules if "holdfast" in name),
    "oom_score": open("/proc/self/oom_score_adj").read().strip(),
    "nice": os.getpriority(os.PRIO_PROCESS, 0),
}
print(json.dumps(told))
"""
CRASHES = {int(number) for number in (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL)}
WATCHED = {"PYTHONFAULTHANDLER", "PYTHONPATH", "HOLDFAST_CHANNEL"}
ROOT = Path(__file__).parents[2]
OF_OURS = ("PYTHONFAULTHANDLER", "PYTHONPATH", "PYTHONHASHSEED", "HOLDFAST_CHANNEL", "HOLDFAST_DIR")


@pytest.fixture
def script(workplace: Workplace) -> list[str]:
    workplace.script("", name="jax.py")  # a framework that takes no time to import
    return workplace.script(TELLS)


def bare(script: list[str], place: Path, **more: str) -> dict[str, Any]:
    environment = {**{name: value for name, value in os.environ.items() if name not in OF_OURS}, **more}
    done = subprocess.run(script, cwd=place, env=environment, capture_output=True, check=True, timeout=100)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def under_holdfast(workplace: Workplace, script: list[str], *options: str, **more: str) -> dict[str, Any]:
    environment = {**{name: value for name, value in os.environ.items() if name not in OF_OURS}, **more}
    done = workplace.run(script, *options, env=environment, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr.decode()
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("options", "gained"),
    [
        (("--policy", "observe"), set()),
        (("--policy", "advise"), WATCHED),
        (("--checkpoint", "off"), WATCHED),
        (("--resume-args", "--load {checkpoint}"), WATCHED),
        ((), WATCHED | {"PYTHONHASHSEED"}),
    ],
)
def test_the_environment_gains_what_the_policy_needs(
    workplace: Workplace, script: list[str], options: tuple[str, ...], gained: set[str]
) -> None:
    without = bare(script, workplace.path)["environment"]
    found = under_holdfast(workplace, script, *options)["environment"]
    assert {name for name in {*found, *without} if found.get(name) != without.get(name)} == gained
    for page in ("README.md", "docs/inside.md"):
        assert {name for name in gained if name not in (ROOT / page).read_text()} == set(), page


def test_what_the_user_has_set_stays(workplace: Workplace, script: list[str]) -> None:
    theirs = {"PYTHONHASHSEED": "7", "PYTHONFAULTHANDLER": "", "PYTHONPATH": "/theirs:/more"}
    found = under_holdfast(workplace, script, **theirs)
    assert {name: found["environment"][name] for name in ("PYTHONHASHSEED", "PYTHONFAULTHANDLER")} == {
        "PYTHONHASHSEED": "7",
        "PYTHONFAULTHANDLER": "",
    }
    assert found["environment"]["PYTHONPATH"].endswith(f"{os.pathsep}/theirs:/more")
    assert found["path"] == bare(script, workplace.path, **theirs)["path"]


@pytest.mark.parametrize(
    ("policy", "handled", "finders"),
    [("observe", set(), 0), ("advise", {*CRASHES, ASK, STANDING}, 1), ("protect", {*CRASHES, ASK, STANDING}, 1)],
)
def test_the_process_gains_one_finder_and_the_handlers_of_faulthandler(
    workplace: Workplace, script: list[str], policy: str, handled: set[int], finders: int
) -> None:
    without = bare(script, workplace.path)
    found = under_holdfast(workplace, script, "--policy", policy)
    assert set(found["handled"]) ^ set(without["handled"]) == handled
    assert len(found["finders"]) - len(without["finders"]) == finders
    assert set(found["modules"]) - set(without["modules"]) == ({"holdfast_inside"} if finders else set())
    assert found["path"] == without["path"]
    assert (found["oom_score"], found["nice"]) == (without["oom_score"], without["nice"])


def test_another_program_gets_the_environment_alone(workplace: Workplace) -> None:
    """A Python that imports no framework loads nothing of Holdfast's but the file that waits for one."""
    source = "import sys; print(sorted(name for name in sys.modules if 'holdfast' in name))"
    done = workplace.run([sys.executable, "-c", source])
    assert done.stdout.strip() == b"[]"


FITS = """
import json, keras, numpy, signal

def handled(number):
    caught = int(next(line for line in open("/proc/self/status") if line.startswith("SigCgt")).split()[1], 16)
    return bool(caught >> (number - 1) & 1)

def seen():
    return {name: handled(getattr(signal, name)) for name in ("SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU")}

class See(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        told["in fit"] = seen()

signal.signal(signal.SIGUSR2, lambda *_: None)
told = {"before": seen()}
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((8, 1)), numpy.ones((8, 1)), verbose=0, callbacks=[See()])
told["theirs"] = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and callable(signal.getsignal(signal.SIGUSR2))
print(json.dumps(told))
"""
THEIRS = {"SIGTERM": False, "SIGUSR1": False, "SIGUSR2": True, "SIGXCPU": False}


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow")
@pytest.mark.parametrize(("options", "taken"), [((), True), (("--checkpoint", "off"), False)])
def test_signals_are_taken_only_to_save_a_fit(workplace: Workplace, options: tuple[str, ...], taken: bool) -> None:
    told = under_holdfast(workplace, workplace.script(FITS), *options)
    ours = dict.fromkeys(THEIRS, True) if taken else THEIRS
    assert told == {"before": THEIRS, "in fit": ours, "theirs": True}
