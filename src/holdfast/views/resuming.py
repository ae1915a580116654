"""Whether a run that is over can be continued, and the command that does it."""

from __future__ import annotations

import shlex

from holdfast.vocabulary import Diagnosis, Event, Window


def last_checkpoint(window: Window) -> Event | None:
    return window.event("checkpoint.saved") or window.event("checkpoint.inherited")


def resume_command(run: str, window: Window, diagnosis: Diagnosis) -> str | None:
    """None for a run that goes on, has finished, or left no checkpoint."""
    start = next(iter(window.events("run.start")), None)
    if start is None or diagnosis.outcome in ("running", "stalled", "completed", "recovered"):
        return None
    options = [str(option) for option in start.data.get("options", ())]
    by_itself = any(option.startswith("--resume-args") for option in options)
    if last_checkpoint(window) is None and not by_itself:
        return None
    return shlex.join(["holdfast", "run", *options, f"--resume={run}"])
