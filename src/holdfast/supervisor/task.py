"""What the user asked for, as relay and watcher need it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Task:
    command: tuple[str, ...]
    directory: Path | None  # the run's own; None where nothing can be written
    cwd: Path
    policy: str = "protect"
    name: str = ""
    memory_bytes: int | None = None
    gpu_memory_bytes: int | None = None

    @property
    def channel(self) -> Path | None:
        """Where the training processes write; `observe` takes over nothing, so it has none."""
        return None if self.policy == "observe" or self.directory is None else self.directory / "inside"
