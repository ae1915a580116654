"""Throws a fault where HOLDFAST_TEST_FAULT says, inside what Holdfast loads into the script's process.

Comes in as the user's own sitecustomize. `guarded` makes every guarded function raise; another name is a path below
holdfast_inside, as `telemetry.Recorder.step`; `all` is every public method of the Recorder and everything guarded.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import os
import sys
from typing import Any

PACKAGE = "holdfast_inside"


class Thrown(Exception):
    pass


def thrower(function: Any, name: str) -> Any:
    @functools.wraps(function)
    def throw(*args: Any, **kwargs: Any) -> Any:
        with open(os.environ["HOLDFAST_TEST_THROWN"], "a", encoding="utf-8") as log:
            log.write(name + "\n")
        raise Thrown(f"thrown by a test in {name}")

    return throw


def spoil(module: Any, fault: str) -> None:
    name = module.__name__[len(PACKAGE) + 1 :]
    if name == "guard" and fault in ("guarded", "all"):
        guarded = module.guarded
        module.guarded = lambda function: guarded(thrower(function, function.__qualname__))
    if name == "telemetry" and fault == "all":
        for attribute, function in inspect.getmembers(module.Recorder, inspect.isfunction):
            if not attribute.startswith("_"):
                setattr(module.Recorder, attribute, thrower(function, attribute))
    if name and fault.startswith(name + "."):
        *owners, last = fault[len(name) + 1 :].split(".")
        owner = functools.reduce(getattr, owners, module)
        if hasattr(owner, last):
            setattr(owner, last, thrower(getattr(owner, last), fault))


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
            spoil(module, os.environ["HOLDFAST_TEST_FAULT"])

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if os.environ.get("HOLDFAST_TEST_FAULT"):
    sys.meta_path.insert(0, Spoiler())
