"""A script that was to go on from a checkpoint of ours, and whose state could not be put back: it ended before it trained."""

from __future__ import annotations

from holdfast.detectors.endings import ENDING, ending
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

REFUSED = "checkpoint.mismatch"
HEADLINE = "It could not go on from its checkpoint"
NOT_EDITED = "no file of the script was edited since its first attempt"


@reads(ENDING, events=[REFUSED])
def find(window: Window) -> Finding | None:
    how, refused = ending(window), window.event(REFUSED)
    if how is None or how.code == 0 or refused is None:
        return None
    kept = ", and the checkpoint is kept" if refused.data.get("edited") is not False else f"; {NOT_EDITED}"
    evidence = (
        Evidence(f"the state could not be put back: {refused.data.get('reason')}", "telemetry", refused.at),
        Evidence(f"nothing was trained{kept}", "telemetry", refused.at),
        how.evidence(),
    )
    return Finding("checkpoint-mismatch", 0.95, evidence, headline=HEADLINE)
