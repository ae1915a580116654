"""The verdict for programs. The shape is a contract: fields are added, never changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from holdfast.masking import masked_text
from holdfast.recorded_events import RecordedAction
from holdfast.views.resuming import resume_command
from holdfast.views.why_text import not_working
from holdfast.vocabulary import Cause, Diagnosis, Evidence, Window


def as_json(run: str, window: Window, diagnosis: Diagnosis) -> str:
    answer = {
        "run": run,
        "outcome": diagnosis.outcome,
        "cause": _cause(diagnosis.cause) if diagnosis.cause else None,
        "also": [_cause(cause) for cause in diagnosis.also],
        "noticed": [_cause(cause) for cause in diagnosis.noticed],
        "actions": [
            {"at": stamp(event.at), "decision": acted.decision, "result": acted.result}
            for event in window.events(RecordedAction.KIND)
            for acted in (RecordedAction.of(event),)
        ],
        "resume": resume_command(run, window, diagnosis),
        "not_working": not_working(window),
    }
    return json.dumps(answer, indent=2)


def log_as_json(name: str, diagnosis: Diagnosis) -> str:
    return as_json(name, Window(), diagnosis)


def masked_json(text: str) -> str:
    """With tokens and passwords masked wherever they stand: evidence quotes what a script printed."""
    return json.dumps(masked(json.loads(text)))


def masked(value: Any) -> Any:
    if isinstance(value, str):
        return masked_text(value)
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.id,
        "title": cause.title,
        "confidence": cause.confidence,
        "level": cause.level,
        "evidence": [_evidence(item) for item in cause.evidence],
        "remedies": [{"title": remedy.title, "how": remedy.how} for remedy in cause.remedies],
    }


def _evidence(item: Evidence) -> dict[str, Any]:
    at = stamp(item.at) if item.at is not None else None
    return {"text": item.text, "source": item.source, "at": at, "value": item.value}


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
