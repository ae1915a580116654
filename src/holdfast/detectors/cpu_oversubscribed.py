"""The job has several times more runnable threads than processors, so they wait for each other.

Only the job's own threads count, running or waiting; those of other programs do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from holdfast.vocabulary import Detail, Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    wanting_ratio: float = 3.0  # runnable threads for each processor; loaders beside a model make two
    wanting_count: float = 6.0
    seconds: float = 12.0
    samples: int = 5
    steady_ratio: float = 0.7  # of the readings are above; start-up and validation pass


@reads(
    latest=[
        "job.cpu_wanting_count", "job.cores_count", "job.processes_count", "job.threads_count",
        "pressure.cpu_some_percent", "train.step_s",
    ]
)  # fmt: skip
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    newest, cores = window.last("job.cpu_wanting_count"), window.value("job.cores_count")
    if newest is None or not cores:
        return None
    since = newest.at - 1.5 * thresholds.seconds
    recent = [sample for sample in window.series("job.cpu_wanting_count", since) if sample.value is not None]
    if len(recent) < thresholds.samples or recent[-1].at - recent[0].at < thresholds.seconds:
        return None
    enough = max(thresholds.wanting_count, thresholds.wanting_ratio * cores)
    over = [sample for sample in recent if (sample.value or 0.0) >= enough]
    if len(over) < thresholds.steady_ratio * len(recent) or (newest.value or 0.0) < enough:
        return None
    wanting = median(sample.value or 0.0 for sample in recent)
    return _finding(window, wanting, cores, newest.at)


def _finding(window: Window, wanting: float, cores: float, at: float) -> Finding:
    processes = int(window.value("job.processes_count") or 1)
    threads = int(window.value("job.threads_count") or 0)
    each = max(1, int(cores // max(1, processes))) if processes > 1 else max(1, int(cores))
    setting = f"OMP_NUM_THREADS={each}"
    text = (
        f"{wanting:.0f} threads of the job want a processor and there {'is' if cores == 1 else 'are'} {cores:g}: "
        f"they take turns; try {setting}"
    )
    evidence = [Evidence(text, "telemetry", at, wanting)]
    if threads:
        word = "process" if processes == 1 else "processes"
        evidence.append(
            Evidence(f"{processes} {word} with {threads} threads together", "telemetry", at, float(threads))
        )
    pressure = window.value("pressure.cpu_some_percent")
    if pressure is not None:
        evidence.append(Evidence(f"some process waited for a processor {pressure:.0f} % of the time", "telemetry", at, pressure))  # fmt: skip
    step_s = window.value("train.step_s")
    if step_s is not None:
        evidence.append(Evidence(f"a step takes {step_s * 1000:.0f} ms", "telemetry", at, step_s))
    headline = f"{wanting:.0f} threads compete for {cores:g} processors"
    details: dict[str, str] = {Detail.THREADS: str(each), Detail.CORES: f"{cores:g}"}
    return Finding("cpu-oversubscribed", 0.75, tuple(evidence), details, headline=headline)
