"""What is installed for a Python, without importing any of it: names, versions, requirements, and how it was built."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path

from holdfast.checks.contract import Here

PATIENCE_S = 2.0
# Run by any Python from 3.9 on. The folder it is started in is taken off its path first: a json.py may lie there.
PROGRAM = """\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import json, os, platform
version = ".".join(map(str, sys.version_info[:3]))
markers = {
    "os_name": os.name, "sys_platform": sys.platform, "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(), "platform_release": platform.release(),
    "platform_system": platform.system(), "platform_version": platform.version(),
    "python_version": ".".join(version.split(".")[:2]), "python_full_version": version,
    "implementation_name": sys.implementation.name, "implementation_version": version, "extra": "",
}
print(json.dumps({"path": sys.path, "prefix": sys.prefix, "markers": markers}))
"""
WATCHED = frozenset(
    {
        "numpy", "protobuf", "keras", "tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "torch", "torchvision",
        "torchaudio", "jax", "jaxlib", "lightning", "pytorch-lightning", "transformers", "accelerate", "triton",
    }
)  # fmt: skip
WATCHED_PREFIXES = ("nvidia-", "jax-cuda", "jax-rocm")


class NoAnswer(Exception):
    """The Python did not say what it sees; the message is one line."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    path: tuple[str, ...]
    prefix: str
    markers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Package:
    name: str  # as `normalised`
    version: str
    requires: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path)  # that it is installed in


def ask(here: Here) -> Interpreter:
    here.asked(here.python)
    try:
        done = subprocess.run(
            [here.python, "-c", PROGRAM],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=PATIENCE_S, check=False, env=dict(here.environment),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{here.python} did not start within {PATIENCE_S:g} s") from None
    except OSError as error:
        raise NoAnswer(f"{here.python} cannot be started: {error.strerror}") from None
    try:
        found = json.loads(done.stdout.strip().splitlines()[-1])
        return Interpreter(tuple(found["path"]), found["prefix"], found["markers"])
    except (IndexError, ValueError, KeyError, TypeError):
        said = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise NoAnswer(f"{here.python} does not run Python: {said}") from None


def packages(path: Iterable[str]) -> dict[str, Package]:
    """Those that matter here. As for Python itself, the first on the path counts."""
    found: dict[str, Package] = {}
    for entry in path:
        try:
            names = sorted(os.listdir(entry))  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            stem, dot, kind = name.rpartition(".")
            package = normalised(stem.partition("-")[0])
            if not dot or kind not in ("dist-info", "egg-info") or package in found or not is_watched(package):
                continue
            one = _read(Path(entry), name, package)
            if one is not None:
                found[package] = one
    return found


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def is_watched(name: str) -> bool:
    return name in WATCHED or name.startswith(WATCHED_PREFIXES)


def _read(entry: Path, name: str, package: str) -> Package | None:
    for file in ("METADATA", "PKG-INFO"):
        try:
            head = HeaderParser().parsestr((entry / name / file).read_text("utf-8", "replace").partition("\n\n")[0])
        except OSError:
            continue
        if version := head.get("Version"):
            return Package(package, str(version), tuple(map(str, head.get_all("Requires-Dist") or ())), entry)
    return None
