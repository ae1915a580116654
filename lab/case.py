"""Reads a case: a folder with `train.py`, `healthy.py` and what is expected of them in `expect.toml`.

A case whose fault comes from outside (`[ending]`) needs no `healthy.py`: the same program, left alone, is its twin.
A case without a `train.py` is one healthy program of its own, one that looks dangerous and is not.
"""

from __future__ import annotations

import re
import signal
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"
FRAMEWORKS = {"keras": ("keras", "tensorflow"), "tf": ("tensorflow",), "torch": ("torch",), "jax": ("jax",)}
POLICIES = ("observe", "advise", "protect")
OUTCOMES = ("completed", "recovered", "failed", "stalled", "stopped", "unknown")
RECEIVERS = ("script", "holdfast")
CANNOT_TELL = "none"
SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class BadCase(Exception):
    """An `expect.toml` that cannot be used, in one line."""


@dataclass(frozen=True, slots=True)
class Tmpfs:
    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Limits:
    memory: int | None = None
    pids: int | None = None
    nofile: int | None = None
    cpu_seconds: int | None = None
    address_space: int | None = None
    cpus: int | None = None
    kernel_log: bool = True
    tmpfs: tuple[Tmpfs, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """A signal from outside, sent once the program has printed `after_output`; several: the seed chooses."""

    signal: signal.Signals
    after_output: tuple[str, ...]
    to: str = "script"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another job on the machine, killed at a memory limit of its own while this one runs, healthy or not."""

    memory: int
    after_output: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some evidence line must hold. `line` is a statement of train.py whose file and line must be named."""

    contains: tuple[str, ...] = ()
    line: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    folder: Path
    title: str
    framework: str
    accept: tuple[str, ...]
    outcome: str
    exit_code: tuple[int, ...]
    prints: str
    policy: str = "protect"
    quick: bool = False
    warns: str = ""  # what a line of Holdfast's must hold while the failing program runs
    command: tuple[str, ...] = ("python", "train.py")
    needs: tuple[str, ...] = ()
    seeded: dict[str, tuple[int, int]] = field(default_factory=dict)  # constants of train.py, each with its range
    limits: Limits = field(default_factory=Limits)
    ending: Ending | None = None
    neighbour: Neighbour | None = None
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def expected(self) -> str:
        return " | ".join(self.accept) or CANNOT_TELL

    @property
    def has_fault(self) -> bool:
        return (self.folder / "train.py").exists()

    @property
    def programs(self) -> tuple[Path, ...]:
        return (self.folder / "train.py", self.healthy_program) if self.has_fault else (self.healthy_program,)

    @property
    def healthy_program(self) -> Path:
        twin = self.folder / "healthy.py"
        return twin if twin.exists() or self.ending is None else self.folder / "train.py"

    def evidence_line_number(self) -> int:
        lines = (self.folder / "train.py").read_text().splitlines()
        found = [number for number, line in enumerate(lines, 1) if line.strip() == self.evidence.line]
        if len(found) != 1:
            raise BadCase(f"{self.name}: evidence.line must be one line of train.py, found {len(found)}")
        return found[0]


def parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None:
        raise BadCase(f"{text!r} is no size; write 900M or 4G")
    return int(match[1]) * SIZE_UNITS[match[2]]


def seeded_line(name: str) -> re.Pattern[str]:
    return re.compile(rf"^({re.escape(name)} = )\d+$", re.MULTILINE)


def load(folder: Path) -> Case:
    path = folder / "expect.toml"
    try:
        raw = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadCase(f"{path}: {error}") from error
    try:
        case = _case(folder, raw)
    except KeyError as error:
        raise BadCase(f"{path}: {error.args[0]} is missing") from error
    except (BadCase, TypeError, ValueError) as error:
        raise BadCase(f"{path}: {error}") from error
    _check(case)
    return case


def load_all(names: list[str] | None = None, cases: Path = CASES) -> list[Case]:
    """The named cases in the order asked for, or all of them by name."""
    there = sorted(path.parent.name for path in cases.glob("*/expect.toml"))
    unknown = [name for name in names or () if name not in there]
    if unknown:
        raise BadCase(f"no case is called {', '.join(unknown)}; there are: {', '.join(there)}")
    return [load(cases / name) for name in names or there]


def _case(folder: Path, raw: dict[str, Any]) -> Case:
    fields = dict(raw)
    if not (folder / "train.py").exists() and "ending" not in fields:
        fields |= {"cause": CANNOT_TELL, "outcome": "completed", "exit_code": 0}
    cause, accept = fields.pop("cause", None), fields.pop("accept", None)
    if (cause is None) == (accept is None):
        raise BadCase("give either cause or accept")
    known = Case.__dataclass_fields__.keys() - {"name", "folder"}
    _no_others("expect.toml", fields, known - {"accept"})
    return Case(
        name=folder.name,
        folder=folder,
        title=fields.pop("title"),
        framework=fields.pop("framework"),
        accept=tuple(accept) if accept else () if cause == CANNOT_TELL else (cause,),
        outcome=fields.pop("outcome"),
        exit_code=_codes(fields.pop("exit_code")),
        prints=fields.pop("prints"),
        command=tuple(fields.pop("command", ("python", "train.py"))),
        needs=tuple(fields.pop("needs", ())),
        seeded={name: (low, high) for name, (low, high) in fields.pop("seeded", {}).items()},
        limits=_limits(fields.pop("limits", {})),
        ending=_ending(fields.pop("ending", None)),
        neighbour=_neighbour(fields.pop("neighbour", None)),
        evidence=_evidence(fields.pop("evidence", {})),
        **fields,
    )


def _codes(value: int | list[int]) -> tuple[int, ...]:
    """Several where the kernel may choose: it kills a worker or the trainer."""
    return (value,) if isinstance(value, int) else tuple(value)


def _limits(raw: dict[str, Any]) -> Limits:
    _no_others("[limits]", raw, Limits.__dataclass_fields__)
    sizes: dict[str, Any] = {key: parse_size(raw[key]) for key in ("memory", "address_space") if key in raw}
    mounts = tuple(Tmpfs(mount["path"], parse_size(mount["size"])) for mount in raw.get("tmpfs", ()))
    return Limits(**(raw | sizes | {"tmpfs": mounts}))


def _ending(raw: dict[str, Any] | None) -> Ending | None:
    if raw is None:
        return None
    _no_others("[ending]", raw, Ending.__dataclass_fields__)
    if raw["signal"] not in signal.Signals.__members__:
        raise BadCase(f"{raw['signal']!r} is no signal")
    texts = raw["after_output"]
    choices = (texts,) if isinstance(texts, str) else tuple(texts)
    return Ending(signal.Signals[raw["signal"]], choices, raw.get("to", "script"))


def _neighbour(raw: dict[str, Any] | None) -> Neighbour | None:
    if raw is None:
        return None
    _no_others("[neighbour]", raw, Neighbour.__dataclass_fields__)
    return Neighbour(parse_size(raw["memory"]), raw["after_output"])


def _evidence(raw: dict[str, Any]) -> Evidence:
    _no_others("[evidence]", raw, Evidence.__dataclass_fields__)
    return Evidence(tuple(raw.get("contains", ())), raw.get("line", ""))


def _no_others(place: str, raw: dict[str, Any], known: Any) -> None:
    others = sorted(set(raw) - set(known))
    if others:
        raise BadCase(f"{place} has no {', '.join(others)}")


def _check(case: Case) -> None:
    choices = (
        ("framework", case.framework, tuple(FRAMEWORKS)),
        ("policy", case.policy, POLICIES),
        ("outcome", case.outcome, OUTCOMES),
        ("ending.to", case.ending.to if case.ending else "script", RECEIVERS),
    )
    for key, value, allowed in choices:
        if value not in allowed:
            raise BadCase(f"{case.name}: {key} is {value!r}, not one of {', '.join(allowed)}")
    for program in case.programs:
        if not program.exists():
            raise BadCase(f"{case.name}: {program.name} is missing")
    for name in case.seeded:
        if seeded_line(name).search(case.programs[0].read_text()) is None:
            raise BadCase(f"{case.name}: {case.programs[0].name} has no line {name} = NUMBER")
    if case.evidence.line:
        case.evidence_line_number()
