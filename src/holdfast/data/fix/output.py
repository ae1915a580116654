"""Where a cleaned file goes: written beside its place, synced, renamed. The list of changes is there before it is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.data.fix.rules import CannotFix, Change, Rules


class Output:
    """One file or store. `head` says what it was made from: a restart leaves out what was made from the same."""

    def __init__(self, source: Path, target: Path, rules: Rules) -> None:
        self.source, self.target = source, target
        self.report = target.with_name(target.name + ".changes.jsonl")
        self.unfinished = target.with_name(f".{target.name}.unfinished")
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        states = [file.stat() for file in files if file.is_file()]
        self._head = {
            "input": str(source),
            "bytes": sum(state.st_size for state in states),
            "changed_at_ns": max((state.st_mtime_ns for state in states), default=0),
            "rules": rules.as_plain(),
        }
        self.changed = self.dropped = 0

    def is_done(self) -> bool:
        if not self.target.exists():
            return False
        try:
            with open(self.report) as lines:
                made_from = json.loads(next(lines))
        except (OSError, ValueError, StopIteration):
            made_from = None
        if made_from != self._head:
            raise CannotFix(f"{self.target} is there already and was made from something else; choose another folder")
        return True

    def open(self) -> None:
        """An interrupted attempt may have left something."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        if self.unfinished.is_dir():
            shutil.rmtree(self.unfinished)
        self._lines = open(self.report.with_name(f".{self.report.name}.unfinished"), "w")  # noqa: SIM115 - closed by finish()
        self._write(self._head)

    def changes(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._write(change.as_plain())
            self.changed += 1

    def drop(self, row: int, reason: str) -> None:
        self._write({"row": row, "dropped": reason})
        self.dropped += 1

    def _write(self, line: dict[str, Any]) -> None:
        self._lines.write(json.dumps(line) + "\n")

    def finish(self) -> None:
        self._write({"changed": self.changed, "dropped": self.dropped})
        self._lines.flush()
        os.fsync(self._lines.fileno())
        self._lines.close()
        Path(self._lines.name).replace(self.report)
        _sync(self.unfinished)
        self.unfinished.replace(self.target)
        _sync_folder(self.target.parent)


def _sync(path: Path) -> None:
    if path.is_dir():
        for inner in path.rglob("*"):
            if inner.is_file():
                _sync(inner)
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
