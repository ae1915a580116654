"""What the user asked for, as relay and watcher need it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.supervisor.silence import Limits
from holdfast.vocabulary import Policy

PLACEHOLDER = re.compile(r"\{checkpoint(?::([^{}]*))?\}")  # in --resume-args


@dataclass(frozen=True, slots=True)
class RunSpec:
    command: tuple[str, ...]
    directory: Path | None  # the run's own; None where nothing can be written
    cwd: Path
    policy: Policy = Policy.PROTECT
    name: str = ""
    memory_bytes: int | None = None
    gpu_memory_bytes: int | None = None
    checkpoint: str | float = "auto"  # or "off", or every so many seconds
    max_restarts: int = 3
    hang_timeout_s: float = 300.0  # how long a job may stand still before it is ended
    silence: Limits = field(default_factory=Limits)  # from when on its stacks are taken
    resume_args: str = ""  # for scripts that resume by an option of their own
    resumed_from: str = ""  # the run whose checkpoints are in this one's directory
    resumed_step: int | None = None
    began: float = 0.0  # start of the first run that this one continues: older checkpoints belong to other runs
    micro_batches: int | None = None  # to start with, where a run is resumed
    on_failure: str = ""  # a shell command
    notify: str = ""  # an address to which the verdict of a run that failed is sent
    attached: bool = False  # to a process that ran already, by `holdfast.attach()`
    notebook: str = ""  # whose kernel that is, where Jupyter says so
    options: tuple[str, ...] = ()  # as typed, for the command that resumes this run

    @property
    def channel(self) -> Path | None:
        """Where the training processes write; `observe` takes over nothing, so it has none."""
        return None if self.policy == Policy.OBSERVE or self.directory is None else self.directory / "inside"

    @property
    def checkpoints(self) -> Path | None:
        """Where ours are kept. A script that resumes by itself has its own."""
        taken = self.policy == Policy.PROTECT and self.checkpoint != "off" and not self.resume_args
        return self.directory / "checkpoints" if taken and self.directory is not None else None

    @property
    def may_restart(self) -> bool:
        return self.policy == Policy.PROTECT and self.max_restarts > 0

    @property
    def why_command(self) -> list[str]:
        """What tells how this run ended, typed where it was started."""
        place = [word for pair in itertools.pairwise(self.options) if pair[0] == "--dir" for word in pair]
        place += [option for option in self.options if option.startswith("--dir=")]
        return ["holdfast", "why", self.directory.name if self.directory is not None else "", *place]
