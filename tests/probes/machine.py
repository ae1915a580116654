"""A machine made of files, for probes that take a root."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.probes import Reading, Scope
from holdfast.vocabulary import Event, Sample

GIB = 1 << 30
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
WATCHER, SCRIPT = 100, 101


class FakeMachine:
    def __init__(self, root: Path) -> None:
        self.root = root

    def scope(self, *directories: str) -> Scope:
        return Scope(SCRIPT, WATCHER, tuple(Path(one) for one in directories), self.root)

    def write(self, path: str, text: str) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def folder(self, path: str) -> Path:
        folder = self.root / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def meminfo(self, **kib: int) -> None:
        self.write("/proc/meminfo", "".join(f"{key}: {value} kB\n" for key, value in kib.items()))

    def process(
        self,
        pid: int,
        parent: int,
        *,
        name: str = "python",
        state: str = "S",
        rss_bytes: int = 0,
        cpu_s: float = 0.0,
        children_cpu_s: float = 0.0,
        threads: int = 1,
        started: int | None = None,
    ) -> None:
        fields = ["0"] * 50
        fields[0], fields[1] = state, str(parent)
        fields[11], fields[13] = str(round(cpu_s * TICKS)), str(round(children_cpu_s * TICKS))
        fields[17], fields[19], fields[21] = str(threads), str(started or pid), str(rss_bytes // PAGE)
        self.write(f"/proc/{pid}/stat", f"{pid} ({name}) {' '.join(fields)}\n")
        self.write(f"/proc/{pid}/cmdline", f"{name}\0train.py\0")

    def no_process(self, pid: int) -> None:
        folder = self.root / f"proc/{pid}"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def mounts(self, *lines: str, pid: int = SCRIPT) -> None:
        """Each line: `device root point kind options`."""
        text = ""
        for number, line in enumerate(lines):
            device, top, point, kind, options = line.split(" ")
            mode = "ro" if options.split(",")[0] == "ro" else "rw"
            text += f"{number + 20} 1 {device} {top} {point} {mode},relatime shared:1 - {kind} {kind} {options}\n"
        self.write(f"/proc/{pid}/mountinfo", text)

    def group(self, path: str, **files: str | int) -> None:
        """Files of a control group; `memory_max` is memory.max, `memory_limit__in__bytes` is memory.limit_in_bytes."""
        for name, value in files.items():
            file = name.replace("__", "\0").replace("_", ".").replace("\0", "_")
            self.write(f"{path}/{file}", f"{value}\n")


def samples(readings: Iterable[Reading]) -> dict[str, float | None]:
    return {reading.name: reading.value for reading in readings if isinstance(reading, Sample)}


def reasons(readings: Iterable[Reading]) -> dict[str, str]:
    return {r.name: r.reason for r in readings if isinstance(r, Sample) and r.value is None}


def events(readings: Iterable[Reading], kind: str) -> list[Event]:
    return [reading for reading in readings if isinstance(reading, Event) and reading.kind == kind]
