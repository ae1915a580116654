"""Runs as Prometheus reads them: one scrape is one look at their records. Needs the extra `prometheus`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.journal import Follower, NewerJournal
from holdfast.recorded_events import MicroBatches, RecordedFinding, WentOn
from holdfast.views.overview import Overview, RunReader
from holdfast.vocabulary import Event

ENDED_SHOWN_S = 900.0  # a run that has ended is told for so long with `holdfast_up` 0, so that a scrape sees it end
RESCUES = ("rescue.caught", "rescue.foreseen")
COMMAND_CHARACTERS = 200

Alive = Callable[[Sequence[Event]], bool]  # `cli.recording.any_alive`


class Metrics:
    """Keeps its place in every record, so a scrape reads only what is new."""

    def __init__(self, alive: Alive) -> None:
        self._alive = alive
        self._known: dict[Path, RunState] = {}

    def text(self, runs: Iterable[Path]) -> bytes:
        """`runs`: all there are; those that ended long ago are left out without being read."""
        fresh = [run for run in runs if time.time() - _written_at(run) < ENDED_SHOWN_S]
        self._known = {run: self._known.get(run) or RunState(run, self._alive) for run in fresh}
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected([found for state in self._known.values() if (found := state.look()) is not None]))
        return bytes(generate_latest(registry))


class RunState:
    """One run: how it stands, and what was counted in it."""

    def __init__(self, run: Path, alive: Alive) -> None:
        self._reader = RunReader(run, alive)
        self._events = Follower(run / "journal", names=frozenset())
        self.findings: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.micro_batches = 1
        self.overview: Overview | None = None

    def look(self) -> RunState | None:
        """None where nothing is recorded yet, or a newer version recorded it."""
        try:
            self.overview = self._reader.read()
            for record in self._events.new():
                if isinstance(record, Event):
                    self._take(record)
        except NewerJournal:
            return None
        return self if self.overview.since is not None else None

    def _take(self, event: Event) -> None:
        self.counted[event.kind] += 1
        if event.kind == RecordedFinding.KIND:
            self.findings[RecordedFinding.of(event).cause] += 1
        elif event.kind == MicroBatches.KIND:
            self.micro_batches = MicroBatches.of(event).k


class Family(Protocol):
    def add_metric(self, labels: Sequence[str], value: float) -> None: ...


class _Collected:
    def __init__(self, states: Sequence[RunState]) -> None:
        self._states = states

    def collect(self) -> Iterator[Metric]:
        yield from self._about_runs()
        yield from self._progress()
        yield from self._memory()
        yield from self._gpus()
        yield from self._counted()

    def _each(self) -> Iterator[tuple[str, RunState, Overview]]:
        for state in self._states:
            if state.overview is not None:
                yield state.overview.run, state, state.overview

    def _gauge(self, name: str, about: str, value: Callable[[Overview], float | None]) -> Metric:
        family = GaugeMetricFamily(f"holdfast_{name}", about, labels=["run"])
        for run, _, overview in self._each():
            if (found := value(overview)) is not None:
                family.add_metric([run], found)
        return family

    def _about_runs(self) -> Iterator[Metric]:
        yield self._gauge(
            "up", "1 while the run goes on, 0 for some minutes after its end.", lambda o: float(o.is_live)
        )
        about = GaugeMetricFamily(
            "holdfast_run_info", "What the run is; always 1.", labels=["run", "command", "framework", "outcome"]
        )
        for run, _, o in self._each():
            about.add_metric([run, o.command[:COMMAND_CHARACTERS], o.framework, o.outcome], 1.0)
        yield about
        yield self._gauge("start_time_seconds", "When the run began.", lambda o: o.since)
        yield self._gauge("end_time_seconds", "When it ended, or was last heard of.", lambda o: o.until)
        yield self._gauge("attempt", "Which attempt this is, from 1 on.", lambda o: o.attempt)
        yield self._gauge("silent_seconds", "For how long nothing has moved in the job.", lambda o: o.silent_s)

    def _progress(self) -> Iterator[Metric]:
        steps = CounterMetricFamily("holdfast_steps", "Training steps of this attempt.", labels=["run"])
        for run, _, overview in self._each():
            if overview.progress is not None:
                steps.add_metric([run], overview.progress.step)
        yield steps
        gauges: tuple[tuple[str, str, Callable[[Overview], float | None]], ...] = (
            ("last_step_time_seconds", "When the last training step was.", lambda o: o.progress.at if o.progress else None),
            ("epoch", "The epoch, as the framework counts.", lambda o: o.progress.epoch if o.progress else None),
            ("steps_per_second", "Steps lately.", lambda o: o.progress.steps_per_s if o.progress else None),
            ("step_seconds", "Time of a step.", lambda o: o.progress.step_s if o.progress else None),
            ("wait_ratio", "Share of a step that waits for data.", lambda o: o.progress.wait_ratio if o.progress else None),
            ("loss", "The training loss; may be NaN.", lambda o: o.loss.value if o.loss else None),
            ("gradient_norm", "Norm of all gradients.", lambda o: o.gradient_norm.value if o.gradient_norm else None),
            ("checkpoint_time_seconds", "When the last checkpoint was saved.", lambda o: o.checkpoint[1] if o.checkpoint else None),
            ("checkpoint_step", "The step of the last checkpoint.", lambda o: o.checkpoint[0] if o.checkpoint else None),
        )  # fmt: skip
        for name, text, value in gauges:
            yield self._gauge(name, text, value)

    def _memory(self) -> Iterator[Metric]:
        labels = ["run", "where"]
        used = GaugeMetricFamily("holdfast_memory_used_bytes", "Memory taken of host, job, swap, GPU.", labels=labels)
        limit = GaugeMetricFamily("holdfast_memory_limit_bytes", "What it may not pass.", labels=labels)
        left = GaugeMetricFamily(
            "holdfast_memory_exhausted_in_seconds", "Until it is full, where it grows.", labels=labels
        )
        for run, _, overview in self._each():
            for level in overview.memory:
                used.add_metric([run, level.what], level.used_bytes)
                if level.limit_bytes is not None:
                    limit.add_metric([run, level.what], level.limit_bytes)
                if level.seconds_left is not None:
                    left.add_metric([run, level.what], level.seconds_left)
        yield from (used, limit, left)

    def _gpus(self) -> Iterator[Metric]:
        labels = ["run", "gpu"]
        busy = GaugeMetricFamily("holdfast_gpu_utilisation_ratio", "Share of time in which it computed.", labels=labels)
        heat = GaugeMetricFamily("holdfast_gpu_temperature_celsius", "Temperature.", labels=labels)
        power = GaugeMetricFamily("holdfast_gpu_power_watts", "Power drawn.", labels=labels)
        for run, _, overview in self._each():
            for gpu in overview.gpus:
                if gpu.utilisation_percent is not None:
                    busy.add_metric([run, gpu.index], gpu.utilisation_percent / 100)
                if gpu.temperature_celsius is not None:
                    heat.add_metric([run, gpu.index], gpu.temperature_celsius)
                if gpu.power_watts is not None:
                    power.add_metric([run, gpu.index], gpu.power_watts)
        yield from (busy, heat, power)

    def _counted(self) -> Iterator[Metric]:
        restarts = CounterMetricFamily("holdfast_restarts", "Times it was started again.", labels=["run"])
        rescues = CounterMetricFamily("holdfast_rescues", "Batches that did not fit in memory.", labels=["run"])
        went_on = CounterMetricFamily(
            "holdfast_bad_steps", "Steps gone on after whose numbers or labels were bad.", labels=["run"]
        )
        pieces = GaugeMetricFamily("holdfast_micro_batches", "Pieces a batch is run in.", labels=["run"])
        findings = CounterMetricFamily("holdfast_findings", "What was noticed, by cause.", labels=["run", "cause"])
        for run, state, _ in self._each():
            restarts.add_metric([run], state.counted["attempt.start"])
            rescues.add_metric([run], sum(state.counted[kind] for kind in RESCUES))
            went_on.add_metric([run], state.counted[WentOn.KIND])
            pieces.add_metric([run], state.micro_batches)
            for cause, number in sorted(state.findings.items()):
                findings.add_metric([run, cause], number)
        yield from (restarts, rescues, went_on, pieces, findings)


def _written_at(run: Path) -> float:
    """When its record last grew; a run that is just being started has none yet."""
    try:
        return max((entry.stat().st_mtime for entry in (run / "journal").iterdir()), default=run.stat().st_mtime)
    except OSError:
        return 0.0
