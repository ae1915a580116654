"""What an interrupted audit leaves, file by file, so that the next one goes on. A finished audit leaves nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np

from holdfast.data.audit.duplicates import Hashes
from holdfast.data.audit.report import TableReport
from holdfast.data.audit.tables import Wanted

VERSION = 1
AT_ONCE_S = 1.0  # a file that took so long is kept at once; the others when it is known that they are needed


class Kept:
    """Keyed by path, size, time of change and what was looked for: a file that changed is looked at again."""

    def __init__(self, state: Path, wanted: Wanted) -> None:
        self._folder, self._wanted = state / "audit", wanted
        self._mine: list[Path] = []
        self._waiting: list[tuple[Path, list[TableReport], list[Hashes | None]]] = []
        self.done = 0

    def load(self, path: Path) -> tuple[list[TableReport], list[Hashes | None]] | None:
        place = self._place(path)
        self._mine.append(place)
        try:
            plain = json.loads(place.read_text())
            reports = [TableReport.of_plain(one) for one in plain["tables"]]
            hashes = [self._hashes(place, number, one) for number, one in enumerate(plain["hashes"])]
            self.done += 1
            return reports, hashes
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def take(self, path: Path, reports: list[TableReport], hashes: list[Hashes | None], took_s: float) -> None:
        self.done += 1
        self._waiting.append((path, reports, hashes))
        if took_s >= AT_ONCE_S:
            self.save()

    def save(self) -> None:
        for waiting in self._waiting:
            self._save(*waiting)
        self._waiting = []

    def _save(self, path: Path, reports: list[TableReport], hashes: list[Hashes | None]) -> None:
        """A disk that takes nothing costs only the going on."""
        place = self._place(path)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError), open(self._folder.parent / ".gitignore", "x") as ignore:
                ignore.write("*\n")
            for number, one in enumerate(hashes):
                if one is not None:
                    np.save(self._hash_file(place, number), np.stack([one.values().view(np.int64), one.row_numbers()]))
            told = [
                None if one is None else {"shift": one.shift, "rows": one.rows, "again": one.again} for one in hashes
            ]
            text = json.dumps({"tables": [report.as_plain() for report in reports], "hashes": told})
            unfinished = place.with_suffix(f".{os.getpid()}")
            unfinished.write_text(text)
            unfinished.replace(place)

    def forget(self) -> None:
        for place in self._mine:
            for left in (place, *self._folder.glob(f"{place.stem}.*.npy")):
                left.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # others may have theirs there

    def _place(self, path: Path) -> Path:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        states = [(status.st_size, status.st_mtime_ns) for status in (file.stat() for file in files)]
        known = (str(path.resolve()), len(states), hash(tuple(states)), asdict(self._wanted), VERSION)
        return self._folder / f"{hashlib.sha256(repr(known).encode()).hexdigest()[:32]}.json"

    @staticmethod
    def _hash_file(place: Path, number: int) -> Path:
        return place.with_name(f"{place.stem}.{number}.npy")

    def _hashes(self, place: Path, number: int, told: dict[str, int] | None) -> Hashes | None:
        if told is None:
            return None
        values, places = np.load(self._hash_file(place, number))
        return Hashes(told["shift"], told["rows"], [values.view(np.uint64)], [places], told["again"])
