"""What was captured: one JSON object a line, in one file per family, and the versions of what printed it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parent / "captures"
VERSIONS = "versions.json"
LARGEST_BYTES = 8192
FIRST_BYTES = 2048
LEFT_OUT = "\n[...]\n"


@dataclass(frozen=True, slots=True)
class Capture:
    program: str
    family: str
    environment: str
    causes: tuple[str, ...]
    exit_code: int
    text: str


def load_all(folder: Path = CAPTURES) -> list[Capture]:
    return [_capture(path.stem, json.loads(row)) for path in sorted(folder.glob("*.jsonl")) for row in _rows(path)]


def save(family: str, captures: Iterable[Capture], folder: Path = CAPTURES) -> None:
    folder.mkdir(exist_ok=True)
    rows = sorted(captures, key=lambda capture: (capture.program, capture.environment))
    told = [{key: value for key, value in asdict(row).items() if key != "family"} for row in rows]
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in told)
    (folder / f"{family}.jsonl").write_text(text, encoding="utf-8", errors="replace")


def versions(folder: Path = CAPTURES) -> dict[str, dict[str, str]]:
    path = folder / VERSIONS
    found: dict[str, dict[str, str]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def save_versions(found: dict[str, dict[str, str]], folder: Path = CAPTURES) -> None:
    folder.mkdir(exist_ok=True)
    (folder / VERSIONS).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def shortened(text: str) -> str:
    """How it began and how it ended, at most 8 KiB, cut between lines."""
    if len(text.encode()) <= LARGEST_BYTES:
        return text
    first = text.encode()[:FIRST_BYTES].decode(errors="ignore").rpartition("\n")[0]
    last = text.encode()[-(LARGEST_BYTES - FIRST_BYTES - len(LEFT_OUT)) :].decode(errors="ignore").partition("\n")[2]
    return first + LEFT_OUT + last


def _rows(path: Path) -> list[str]:
    # Not splitlines: it also breaks at separators that a program may print.
    return [row for row in path.read_text(encoding="utf-8").split("\n") if row]


def _capture(family: str, raw: dict[str, Any]) -> Capture:
    return Capture(family=family, causes=tuple(raw.pop("causes")), **raw)
