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
HANGS = Path(__file__).parent / "hangs"  # programs that stand still, and healthy ones that only seem to: minutes each
NUMERICS = Path(__file__).parent / "numerics"  # programs that train badly, and healthy ones that only seem to
FRAMEWORKS = {
    "keras": ("keras", "tensorflow"),
    "tf": ("tensorflow",),
    "torch": ("torch",),
    "jax": ("jax",),
    "lightning": ("lightning", "torch"),
    "transformers": ("transformers", "torch"),
}
POLICIES = ("observe", "advise", "protect")
OUTCOMES = ("completed", "recovered", "failed", "stalled", "stopped", "unknown")
RECEIVERS = ("script", "holdfast", "worker")
STALLED = "stalled"
TERMINATED = 143
CANNOT_TELL = "none"
ABOVE_IMPORTS = "imports+"
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
    memory_above_imports: bool = False  # "imports+500M": above what importing the framework takes here
    pids: int | None = None
    nofile: int | None = None
    cpu_seconds: int | None = None
    cpu_above_imports: bool = False
    address_space: int | None = None
    cpus: int | None = None
    kernel_log: bool = True
    tmpfs: tuple[Tmpfs, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """A signal from outside, sent once the program has printed `after_output`; several: the seed chooses.

    A worker is the newest process below the script.
    """

    signal: signal.Signals
    after_output: tuple[str, ...]
    to: str = "script"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another job on the machine, killed at a memory limit of its own while this one runs, healthy or not."""

    memory: int
    after_output: str


@dataclass(frozen=True, slots=True)
class Hang:
    """From the moment it has printed `after_output` the failing program stands still. `why` must say so, with the cause,
    within so many seconds, while it does."""

    after_output: str
    within_s: float


@dataclass(frozen=True, slots=True)
class Suspended:
    """Ctrl-Z at the terminal, and `fg` so many seconds later; for either twin."""

    after_output: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Typed:
    """A person answers a prompt at the terminal after some time; for either twin."""

    after_output: str
    after_s: float
    text: str


@dataclass(frozen=True, slots=True)
class FrozenFiles:
    """A file system of its own (FUSE) over the folder `path`; it stops answering once `after_output` is printed."""

    path: str
    after_output: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some evidence line must hold. `line`: a statement of train.py whose file and line must be named, or several of
    which one must be. `matches`: patterns, for what can be said in several ways. `step`: where it begins, counted from 1;
    a line must name it or a step beside it."""

    contains: tuple[str, ...] = ()
    line: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    step: int | None = None


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
    options: tuple[str, ...] = ()  # further ones of `holdfast run`
    needs: tuple[str, ...] = ()
    seeded: dict[str, tuple[int, int]] = field(default_factory=dict)  # constants of train.py, each with its range
    limits: Limits = field(default_factory=Limits)
    ending: Ending | None = None
    neighbour: Neighbour | None = None
    hang: Hang | None = None
    suspended: Suspended | None = None
    typed: Typed | None = None
    frozen_files: FrozenFiles | None = None
    evidence: Evidence = field(default_factory=Evidence)
    shows: tuple[str, ...] = ()  # patterns of what the failing program prints bare; its twin does not print all
    learns: str = ""  # pattern of the healthy program's output; without one, a twin's last loss is below its first
    continues: bool = False  # under `protect` the failing program must end with a finite loss, below its first

    @property
    def numerics(self) -> bool:
        """Most of these end by themselves, so the cause may be what was noticed, and the outcome is not fixed."""
        return self.folder.parent.name == NUMERICS.name

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
        return twin if twin.exists() or not self.fault_from_outside else self.folder / "train.py"

    @property
    def fault_from_outside(self) -> bool:
        return self.ending is not None or self.frozen_files is not None

    def evidence_line_numbers(self) -> list[int]:
        lines = (self.folder / "train.py").read_text().splitlines()
        numbers = []
        for wanted in self.evidence.line:
            found = [number for number, line in enumerate(lines, 1) if line.strip() == wanted]
            if len(found) != 1:
                raise BadCase(f"{self.name}: evidence.line must be one line of train.py, found {len(found)}")
            numbers += found
        return numbers


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
    if folder.parent.name == NUMERICS.name:
        fields = {"outcome": "completed", "exit_code": 0} | fields
    if "hang" in fields:  # it is asked about while it stands, and then asked to end
        fields |= {"outcome": STALLED, "exit_code": fields.get("exit_code", TERMINATED), "policy": "advise"}
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
        options=tuple(fields.pop("options", ())),
        seeded={name: (low, high) for name, (low, high) in fields.pop("seeded", {}).items()},
        limits=_limits(fields.pop("limits", {})),
        ending=_ending(fields.pop("ending", None)),
        neighbour=_neighbour(fields.pop("neighbour", None)),
        hang=_table(Hang, "hang", fields),
        suspended=_table(Suspended, "suspended", fields),
        typed=_table(Typed, "typed", fields),
        frozen_files=_table(FrozenFiles, "frozen_files", fields),
        evidence=_evidence(fields.pop("evidence", {})),
        shows=tuple(fields.pop("shows", ())),
        **fields,
    )


def _codes(value: int | list[int]) -> tuple[int, ...]:
    """Several where the kernel may choose: it kills a worker or the trainer."""
    return (value,) if isinstance(value, int) else tuple(value)


def _limits(raw: dict[str, Any]) -> Limits:
    _no_others("[limits]", raw, Limits.__dataclass_fields__)
    memory, cpu = str(raw.get("memory", "")), str(raw.get("cpu_seconds", ""))
    found: dict[str, Any] = {
        "memory_above_imports": memory.startswith(ABOVE_IMPORTS),
        "cpu_above_imports": cpu.startswith(ABOVE_IMPORTS),
        "tmpfs": tuple(Tmpfs(mount["path"], parse_size(mount["size"])) for mount in raw.get("tmpfs", ())),
    }
    if memory:
        found["memory"] = parse_size(memory.removeprefix(ABOVE_IMPORTS))
    if cpu:
        found["cpu_seconds"] = int(cpu.removeprefix(ABOVE_IMPORTS))
    if "address_space" in raw:
        found["address_space"] = parse_size(raw["address_space"])
    return Limits(**(raw | found))


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


def _table(kind: type[Any], name: str, fields: dict[str, Any]) -> Any:
    raw = fields.pop(name, None)
    if raw is None:
        return None
    _no_others(f"[{name}]", raw, kind.__dataclass_fields__)
    return kind(**raw)


def _evidence(raw: dict[str, Any]) -> Evidence:
    _no_others("[evidence]", raw, Evidence.__dataclass_fields__)
    line = raw.get("line", ())
    return Evidence(
        contains=tuple(raw.get("contains", ())),
        line=(line,) if isinstance(line, str) else tuple(line),
        matches=tuple(raw.get("matches", ())),
        step=raw.get("step"),
    )


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
    for pattern in (*case.shows, case.learns, *case.evidence.matches):
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadCase(f"{case.name}: {pattern!r} is no pattern: {error}") from error
    if case.numerics and case.has_fault and not case.shows:
        raise BadCase(f"{case.name}: shows is missing: how can one see that train.py fails?")
    for name in case.seeded:
        if seeded_line(name).search(case.programs[0].read_text()) is None:
            raise BadCase(f"{case.name}: {case.programs[0].name} has no line {name} = NUMBER")
    if case.evidence.line:
        case.evidence_line_numbers()
