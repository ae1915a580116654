"""Training waits for its data more than it trains, and what the data waits for: disk, network, or processing."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, median

from holdfast.detectors import input_stages
from holdfast.recorded_events import InputPipeline, PipelineCall
from holdfast.units import amount
from holdfast.vocabulary import Evidence, Finding, Sample, Window
from holdfast.windows import reads

NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "lustre", "ceph", "gluster", "beegfs", "9p", "fuse", "gpfs", "afs")


@dataclass(frozen=True, slots=True)
class Thresholds:
    wait_ratio: float = 0.5
    seconds: float = 10.0
    samples: int = 4  # at least; steps of two seconds give five in ten seconds
    first_steps: int = 10
    wait_s: float = 0.002  # in a step: a toy model with steps of a millisecond is not starved
    io_percent: float = 20.0  # of the time somebody waits for a disk
    blocked_count: float = 0.3
    disk_per_s: float = 30e6
    network_per_s: float = 5e6
    busy_cores: float = 0.3  # low, since on a shared machine a busy loader does not get a whole core


@reads(
    latest=[
        "train.wait_ratio", "train.step_s", "disk.read_bytes", "net.received_bytes", "job.cpu_s",
        "pressure.io_some_percent", "job.blocked_count",
    ],
    course=["train.steps_count"],
    events=["train.phase", input_stages.KIND, InputPipeline.KIND],
)  # fmt: skip
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    waits = _steady_waits(window, thresholds)
    if not waits or waits[-1].at - waits[0].at < 0.9 * thresholds.seconds or len(waits) < thresholds.samples:
        return None
    ratio = median(sample.value or 0.0 for sample in waits)
    step_s = median([s.value for s in window.series("train.step_s", waits[0].at) if s.value is not None] or [0.0])
    if ratio <= thresholds.wait_ratio or ratio * step_s < thresholds.wait_s:
        return None
    if (waits[-1].value or 0.0) <= thresholds.wait_ratio:
        return None  # not any more: the first epoch has filled a cache()
    why, evidence = _whose_fault(window, waits[0].at, thresholds)
    found = input_stages.stages(window)
    details: dict[str, object] = {}
    if found is not None:
        why = f"{input_stages.WORDS[found.stage]} takes the time" if found.stage != input_stages.OWN else why
        evidence = [*_of_stage(found), *evidence]
        details = _details(
            found, input_stages.with_workers(step_s, ratio, found, _rate(window, "job.cpu_s", waits[0].at))
        )
        evidence += [Evidence(str(details["forecast"]), "telemetry", None)] if "forecast" in details else []
    details = _of_pipeline(InputPipeline.of_training(window)) | details
    native = input_stages.in_native_code(window)
    if found is None and native is not None:
        words, calls = native
        why = why.replace("preparing the data keeps", f"{words} keep" if " and " in words else f"{words} keeps")
        evidence = [*(_of_call(call) for call in calls), *evidence]
        alone = input_stages.alone_in_native_code(window) if "one row after another" in details else None
        if alone is not None:
            gain = input_stages.with_workers(step_s, ratio, alone, _rate(window, "job.cpu_s", waits[0].at))
            evidence += (
                [Evidence(_forecast(gain, "row", "at a time beside the training"), "telemetry", None)] if gain else []
            )
    text = f"training waits for data {ratio:.0%} of the time ({_milliseconds(ratio * step_s)} of a {_milliseconds(step_s)} step): {why}"
    first = Evidence(text, "telemetry", waits[-1].at, ratio)
    best = Evidence(
        f"with data that is always there a step would take {_milliseconds((1 - ratio) * step_s)}", "telemetry", None
    )
    return Finding("input-starvation", 0.8, (first, *evidence, best), details, headline=f"Input starved: {why}")


def _of_stage(found: input_stages.Stages) -> list[Evidence]:
    told = [Evidence(found.told, "stacks", None, found.looks / found.of)]
    if found.file:
        on = f" ({found.file_system})" if found.file_system else ""
        told.append(Evidence(f"it reads {found.file}{on}", "stacks", None))
    return told


def _of_call(call: PipelineCall) -> Evidence:
    how = "several rows at a time" if call.parallel else "one row after another"
    return Evidence(f"{call.words}: {', '.join(call.operations)}, {how}", "record", None)


def _of_pipeline(pipeline: InputPipeline | None) -> dict[str, object]:
    """For the recipes: what a tf.data pipeline could do that it does not."""
    if pipeline is None or not pipeline.calls:
        return {}
    if any(input_stages.PYTHON in call.does for call in pipeline.calls):
        return {"python in tf.data": True, "known pipeline": True, "processes": 2}
    alone = [call for call in pipeline.calls if call.call in ("map", "interleave") and not call.parallel]
    details: dict[str, object] = {"known pipeline": True}
    if alone:
        name = alone[-1].function
        details |= {
            "one row after another": True,
            "call": alone[-1].call,
            "function": name if name.isidentifier() else "prepare",
        }
    elif not pipeline.ahead:
        details["not ahead"] = True
    for stage in {stage for call in pipeline.calls for stage in call.does} & {input_stages.DECODE, input_stages.RESIZE}:
        details[f"{stage} by TensorFlow"] = True
    return details


def _details(found: input_stages.Stages, gain: input_stages.Gain | None) -> dict[str, object]:
    """For the recipes: those of the stage, and the number of workers with what it would bring."""
    details: dict[str, object] = {found.stage: True, "processes": max(1, found.cpus - 1)}
    if found.stage == input_stages.READ and found.file_system.startswith(NETWORK_FILE_SYSTEMS):
        details["network read"] = True
    if found.file:
        details["folder"] = found.file.rpartition("/")[0]
    if gain is not None:
        details |= {"workers": gain.workers, "processes": gain.workers, "gain": f"{gain.times:.1f}"}
        others = f"instead of {found.workers}" if found.workers else "beside the training"
        details["forecast"] = _forecast(gain, "worker", others)
    return details


def _forecast(gain: input_stages.Gain, what: str, how: str) -> str:
    many = f"{gain.workers} {what}{'s' if gain.workers > 1 else ''}"
    return f"{many} {how} would make a step about {_milliseconds(gain.step_s)}: {gain.times:.1f} times as fast"


def _steady_waits(window: Window, thresholds: Thresholds) -> list[Sample]:
    """Of the last 13 seconds, while it trains, after the first steps."""
    newest = window.last("train.wait_ratio")
    if newest is None:
        return []
    begun = [s.at for s in window.series("train.steps_count") if (s.value or 0) > thresholds.first_steps]
    pauses = [
        event.at for event in window.events("train.phase") if event.data.get("phase") not in ("train", "validate")
    ]
    since = max([newest.at - 1.3 * thresholds.seconds, *pauses[-1:], *(begun[:1] or [newest.at])])
    return [sample for sample in window.series("train.wait_ratio", since) if sample.value is not None]


def _whose_fault(window: Window, since: float, thresholds: Thresholds) -> tuple[str, list[Evidence]]:
    disk, network = _rate(window, "disk.read_bytes", since), _rate(window, "net.received_bytes", since)
    cores = _rate(window, "job.cpu_s", since)
    pressure, blocked = _mean(window, "pressure.io_some_percent", since), _mean(window, "job.blocked_count", since)
    figures = (
        ("read from disk", disk, f"{amount(disk or 0, 'bytes')}/s"),
        ("received from the network", network, f"{amount(network or 0, 'bytes')}/s"),
        ("processors the job keeps busy", cores, f"{cores or 0:.1f}"),
        ("time some process waits for a disk", pressure, f"{pressure or 0:.0f} %"),
    )
    evidence = [
        Evidence(f"{name}: {text}", "telemetry", None, value) for name, value, text in figures if value is not None
    ]
    if (network or 0) >= thresholds.network_per_s and (network or 0) > (disk or 0):
        return f"the network gives {amount(network or 0, 'bytes')}/s", evidence
    if (pressure or 0) >= thresholds.io_percent or (blocked or 0) >= thresholds.blocked_count:
        return f"the disk is slower than the training (it gives {amount(disk or 0, 'bytes')}/s)", evidence
    if (disk or 0) >= thresholds.disk_per_s:
        return f"the disk gives {amount(disk or 0, 'bytes')}/s", evidence
    if (cores or 0) >= thresholds.busy_cores:
        return f"preparing the data keeps {cores:.1f} processors busy", evidence
    return "the data's own code waits (neither disk, network nor processor is busy)", evidence


def _rate(window: Window, name: str, since: float) -> float | None:
    values = [sample for sample in window.series(name, since) if sample.value is not None]
    if len(values) < 2 or values[-1].at <= values[0].at:
        return None
    return ((values[-1].value or 0.0) - (values[0].value or 0.0)) / (values[-1].at - values[0].at)


def _mean(window: Window, name: str, since: float) -> float | None:
    values = [sample.value for sample in window.series(name, since) if sample.value is not None]
    return mean(values) if values else None


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
