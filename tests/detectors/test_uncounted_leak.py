"""A leak in a loop whose steps nobody counts is told by the stacks taken while memory rose."""

from __future__ import annotations

import pytest

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose
from holdfast.vocabulary import Event, Window
from tests.story import START, kernel, story

MIB = float(1 << 20)
KILLED = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"
SITE = "/opt/venv/lib/python3.12/site-packages"
Frames = list[tuple[str, str, str]]
UPDATE = ("train.py", "<module>", "params, loss = update(params, batch)")
KEEP = ("train.py", "<module>", "snapshots.append(params)")
TRAINS: list[Frames] = [
    [UPDATE],
    [(f"{SITE}/jax/_src/array.py", "_value", ""), ("train.py", "<module>", "print(float(loss))")],
    [(f"{SITE}/jax/_src/pjit.py", "_python_pjit_helper", ""), UPDATE],
    [KEEP],
]
BY_HAND: list[Frames] = [
    [(f"{SITE}/torch/autograd/graph.py", "_engine_run_backward", ""), ("train.py", "main", "cost.backward()")],
    [("train.py", "main", "history.append(w.detach().clone())")],
]
READS: list[Frames] = [
    [(f"{SITE}/numpy/lib/npyio.py", "load", ""), ("train.py", "load_all", "days.append(np.load(path))")],
    [
        (f"{SITE}/jax/_src/numpy/array_constructors.py", "asarray", ""),
        ("train.py", "load_all", "days.append(jnp.asarray(read(path)))"),
    ],
]
BUILDS: list[Frames] = [
    [(f"{SITE}/jax/_src/random.py", "normal", ""), ("model.py", "init_params", "w = random.normal(key, (4096, 4096))")]
]


def rising(kinds: list[Frames], seconds: float = 30.0, count: int = 16, name: str = "jax") -> Window:
    """From 200 MiB to just below the limit, evenly."""
    events: list[Event] = [Event("framework.loaded", START, {"name": name})]
    for i in range(count):
        held = 200 * MIB + i * 800 * MIB / count
        frames = [
            {"file": file, "line": 9, "function": function, "code": code}
            for file, function, code in kinds[i % len(kinds)]
        ]
        about = {"pid": 100, "held_bytes": held, "base_bytes": 90 * MIB, "frames": frames}
        events.append(Event("startup.stack", START + 59.5 - seconds + i * seconds / count, about))
    events.append(kernel(KILLED, START + 59.8))
    return story(137, 9, events=events, cgroup__memory_limit_bytes=[1000 * MIB] * 60)


def cause(window: Window) -> str:
    found = diagnose(window, find_endings(window)).cause
    return found.id if found else ""


@pytest.mark.parametrize(("kinds", "name"), [(TRAINS, "jax"), (BY_HAND, "torch")])
def test_a_loop_that_computes_while_memory_rises_evenly_leaks(kinds: list[Frames], name: str) -> None:
    window = rising(kinds, name=name)
    assert cause(window) == "host-memory-leak"
    found = diagnose(window, find_endings(window)).cause
    assert found is not None and found.confidence < 0.8, "seen from outside, it is no certainty"
    assert any("one loop, at train.py:9" in item.text for item in found.evidence)


@pytest.mark.parametrize("kinds", [READS, BUILDS])
def test_data_that_is_read_and_a_model_that_is_built_are_no_leak(kinds: list[Frames]) -> None:
    assert cause(rising(kinds)) == "container-memory-limit"


def test_a_rise_within_seconds_is_no_leak() -> None:
    assert cause(rising(TRAINS, seconds=4.0)) == "container-memory-limit"


def test_a_few_looks_say_nothing_about_a_course() -> None:
    assert cause(rising(TRAINS, count=5)) == "container-memory-limit"
