"""Throws a fault where HOLDFAST_TEST_FAULT says, inside what Holdfast loads into the script's process.

Comes in as the user's own sitecustomize. `guarded` makes every guarded function raise; `all` every public method of
the Recorder as well; `sometimes` is the same every third time, so that what lies behind the first fault is reached too.
Any other name is a path below holdfast_inside, as `telemetry.Recorder.step`.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import itertools
import os
import sys
from typing import Any

PACKAGE = "holdfast_inside"
FAULT = os.environ.get("HOLDFAST_TEST_FAULT", "")


class Thrown(Exception):
    pass


def thrower(function: Any, name: str) -> Any:
    every = 3 if FAULT == "sometimes" else 1
    calls = itertools.count(1)

    @functools.wraps(function)
    def throw(*args: Any, **kwargs: Any) -> Any:
        if next(calls) % every:
            return function(*args, **kwargs)
        with open(os.environ["HOLDFAST_TEST_THROWN"], "a", encoding="utf-8") as log:
            log.write(name + "\n")
        raise Thrown(f"thrown by a test in {name}")

    return throw


def spoil(module: Any) -> None:
    name = module.__name__[len(PACKAGE) + 1 :]
    if name == "never_raise" and FAULT in ("guarded", "sometimes", "all"):
        guarded = module.guarded
        module.guarded = lambda function: guarded(_spoilt(function))
        if FAULT == "sometimes":
            module.FAILURES = 10**9
    if name == "telemetry" and FAULT in ("sometimes", "all"):
        for attribute, function in inspect.getmembers(module.Recorder, inspect.isfunction):
            if not attribute.startswith("_"):
                setattr(module.Recorder, attribute, thrower(function, attribute))
    if name and FAULT.startswith(name + "."):
        *owners, last = FAULT[len(name) + 1 :].split(".")
        owner = functools.reduce(lambda found, part: getattr(found, part, None), owners, module)
        if hasattr(owner, last):
            function = getattr(owner, last)
            throw = thrower(function, FAULT)
            if hasattr(function, "__wrapped__"):  # it was guarded: throw inside the guard, not in its place
                throw = sys.modules[PACKAGE + ".never_raise"].guarded(throw)
            setattr(owner, last, throw)


def _spoilt(function: Any) -> Any:
    """Installing is left alone: where that fails, no hook is there to fail."""
    name = getattr(function, "__qualname__", "")
    return (
        thrower(function, name) if name and not getattr(function, "__module__", "").endswith(".adapter") else function
    )


class Spoiler(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(PACKAGE + "."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            spoil(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if FAULT:
    sys.meta_path.insert(0, Spoiler())
