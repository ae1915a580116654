"""A run's journal as dated lines, for people and as JSON lines for programs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from holdfast.recorded_events import RecordedAction, RecordedDecision, RecordedFinding
from holdfast.stack_snapshots import RecordedStacks
from holdfast.views.safe_text import safe
from holdfast.vocabulary import Event, Sample

TEXT_CHARACTERS = 300  # of a value in a line; --json has all of it
KIND_WIDTH = 16  # `process.appeared`


def as_line(record: Sample | Event, attempt: int) -> str:
    """Local time with milliseconds, the attempt, what it is, and what it says."""
    what = _sample(record) if isinstance(record, Sample) else _event(record)
    return f"{local_time(record.at)}  #{attempt}  {what}"


def as_json_line(record: Sample | Event, attempt: int) -> str:
    """`value` is null where it is missing and where it is no finite number; `reason` says which."""
    about: dict[str, Any] = {"at": utc_time(record.at), "attempt": attempt}
    if isinstance(record, Event):
        about |= {"kind": "event", "event": record.kind, "data": finite(record.data)}
    else:
        value, reason = record.value, record.reason
        if value is not None and not math.isfinite(value):
            value, reason = None, str(value)
        about |= {"kind": "sample", "name": record.name, "value": value, "unit": record.unit, "step": record.step}
        about["reason"] = reason
    return json.dumps(about, allow_nan=False)


def local_time(at: float) -> str:
    second, thousandth = _rounded(at)
    return f"{_local_second(second)}.{thousandth:03d}"


def utc_time(at: float) -> str:
    second, thousandth = _rounded(at)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{thousandth:03d}Z"


def _rounded(at: float) -> tuple[int, int]:
    thousandths = round(at * 1000)
    return thousandths // 1000, thousandths % 1000


@lru_cache(maxsize=8)  # a second has dozens of samples
def _local_second(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))


def _sample(sample: Sample) -> str:
    if sample.value is None:
        return f"{'sample':<{KIND_WIDTH}}  {sample.name} - ({_short(sample.reason or 'missing')})"
    whole = math.isfinite(sample.value) and sample.value == int(sample.value)
    value = str(int(sample.value)) if whole else f"{sample.value:.6g}"
    step = f"  (step {sample.step})" if sample.step is not None else ""
    return f"{'sample':<{KIND_WIDTH}}  {sample.name} {value}{step}"


def _event(event: Event) -> str:
    if event.kind == RecordedDecision.KIND:
        decided = RecordedDecision.of(event)
        said = f"{decided.decision}: {_short(decided.text)}"
    elif event.kind == RecordedAction.KIND:
        acted = RecordedAction.of(event)
        said = f"{_short(acted.decision)}: {_short(acted.result)}"
    elif event.kind == RecordedFinding.KIND:
        told = RecordedFinding.of(event)
        said = f"{told.cause} ({told.confidence:.0%}): {_short(next(iter(told.evidence), ''))}"
    elif event.kind == RecordedStacks.KIND:
        said = stacks_said(event.data)
    else:
        said = "  ".join(f"{key}={_value(value)}" for key, value in event.data.items() if value not in (None, ""))
    return f"{_short(event.kind):<{KIND_WIDTH}}  {safe(said)}".rstrip()


def stacks_said(data: Mapping[str, Any]) -> str:
    """Of `hang.stacks`, without the stacks."""
    processes = data.get("snapshot", {}).get("processes", ())
    threads = sum(len(process.get("threads", ())) for process in processes)
    silent_s = float(data.get("silent_s", 0.0))
    return f"of {len(processes)} processes with {threads} threads, after {silent_s:.0f} s in which nothing moved"


def _value(value: object) -> str:
    if isinstance(value, str) and value and " " not in value:
        return _short(value)
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(value: object) -> str:
    text = safe(str(value)).replace("\n", "⏎").replace("\t", " ")
    return text if len(text) <= TEXT_CHARACTERS else f"{text[: TEXT_CHARACTERS - 1]}…"


def finite(value: Any) -> Any:
    """JSON has no NaN: null stands for it, as for everything that is not known."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(item) for item in value]
    return value
