"""Everything one turn of the loop reads about one attempt: probes, the training processes' rings, start-up stacks, budgets."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from holdfast.probes import Scope
from holdfast.probes.runner import ProbeRunner
from holdfast.supervisor.budget import budget_samples
from holdfast.supervisor.injection_check import InjectionCheck
from holdfast.supervisor.input_stacks import InputStacks
from holdfast.supervisor.rank_endings import RankEndings
from holdfast.supervisor.ring_samples import RingSamples
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.stack_taking import StackTaking, job_processes
from holdfast.supervisor.standstill import StandstillWatch
from holdfast.supervisor.startup_stacks import StartupStacks
from holdfast.vocabulary import Event, Sample


class Sources:
    def __init__(self, spec: RunSpec, script_pid: int) -> None:
        self._spec = spec
        directories = (spec.cwd, spec.directory or spec.cwd, Path(os.environ.get("TMPDIR") or "/tmp"))
        self._probes = ProbeRunner(Scope(script_pid, os.getpid(), directories))
        self.training = RingSamples(spec.channel) if spec.channel else None
        self._ranks = RankEndings()
        self._injection = InjectionCheck()
        self._startup = StartupStacks(spec.cwd)
        processes = partial(job_processes, script_pid)
        self.standstill = StandstillWatch(StackTaking(spec.directory, processes), spec.silence)
        self._input = InputStacks(StackTaking(None, processes))

    def read(self, now: float) -> list[Sample | Event]:
        return self._with_the_rest(self._probes.poll(now), now)

    def read_at_the_end(self, now: float) -> list[Sample | Event]:
        """Right after the script has ended, before its cgroup and its last lines are gone."""
        return self._with_the_rest(self._probes.closing(now), now)

    def _with_the_rest(self, readings: list[Sample | Event], now: float) -> list[Sample | Event]:
        if self.training is not None:
            readings += self.training.read(now)
            readings += self._ranks.look(readings)
            readings += self._startup.look(readings, now)
            readings += self._input.look(readings, set(self.training.steps()), now)
            readings += self._injection.look(readings, self.training.greeted(), now)
        readings += self._standing(readings, now)
        return readings + budget_samples(self._spec, now)

    def _standing(self, readings: list[Sample | Event], now: float) -> list[Sample | Event]:
        training = self.training
        if training is None:
            return self.standstill.look(readings, 0, "start-up", {}, now)
        return self.standstill.look(
            readings, training.records_count, training.phase, training.steps(), now, ranks=self._ranks.by_process
        )

    @property
    def pace_s(self) -> float:
        return min(self._startup.pace_s, self.standstill.pace_s, self._input.pace_s)

    def close(self) -> None:
        self._probes.close()
        self._ranks.close()
