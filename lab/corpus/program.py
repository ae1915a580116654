"""The programs of the corpus: a few lines each, in one file per family, labelled before anybody asked `why` about them."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.case import BadCase, Limits, Tmpfs, parse_size

PROGRAMS = Path(__file__).parent / "programs"
MEMORY = "4G"  # of a program that names no limit of its own: what runs away is ended before the machine notices
MENDING, FITTING = "mending", "fitting"


@dataclass(frozen=True, slots=True)
class Program:
    """`causes` are those it was made to fail of, any of them right; none: it is healthy, whatever it prints."""

    name: str
    family: str
    causes: tuple[str, ...]
    environments: tuple[str, ...]
    code: str
    file: str = "train.py"
    shell: str = "python train.py"
    finishes: bool = False  # it goes on to its end all the same
    limits: Limits = field(default_factory=Limits)

    @property
    def healthy(self) -> bool:
        return not self.causes


def half(name: str) -> str:
    """Rules are mended from one half of the programs, levels are fitted on the other."""
    return MENDING if hashlib.sha256(name.encode()).digest()[0] % 2 else FITTING


def load_all(folder: Path = PROGRAMS) -> list[Program]:
    programs = [program for path in sorted(folder.glob("*.toml")) for program in _family(path)]
    names = [program.name for program in programs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadCase(f"two programs are called {', '.join(twice)}")
    return programs


def _family(path: Path) -> list[Program]:
    raw = tomllib.loads(path.read_text())
    return [_program(path.stem, raw.get("environments", ()), one) for one in raw["program"]]


def _program(family: str, environments: Sequence[str], raw: dict[str, Any]) -> Program:
    file = raw.get("file", "train.py")
    return Program(
        name=raw["name"],
        family=family,
        causes=tuple(raw["causes"]),
        environments=tuple(raw.get("environments", environments)),
        code=raw["code"].lstrip("\n"),
        file=file,
        shell=raw.get("shell", f"python {file}"),
        finishes=raw.get("finishes", False),
        limits=_limits(raw),
    )


def _limits(raw: dict[str, Any]) -> Limits:
    return Limits(
        memory=parse_size(raw.get("memory", MEMORY)),
        pids=raw.get("pids"),
        nofile=raw.get("nofile"),
        address_space=parse_size(raw["address_space"]) if "address_space" in raw else None,
        tmpfs=tuple(Tmpfs(path, parse_size(size)) for path, size in raw.get("tmpfs", {}).items()),
    )
