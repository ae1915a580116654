"""The data ended before the requested number of steps was done; the framework goes on without an error."""

from __future__ import annotations

from dataclasses import replace

from holdfast.detectors.endings import ENDING, ending
from holdfast.vocabulary import Event, Evidence, Finding, Window
from holdfast.windows import reads

RAISED = (b"StopIteration", b"OutOfRangeError", b"End of sequence")
LAST_WORDS = 4000  # bytes at the end of the output


@reads(events=["train.data_exhausted"])
def find(window: Window) -> Finding | None:
    event = next((event for event in window.events("train.data_exhausted") if _fell_short(event)), None)
    if event is None:
        return None
    done, asked = event.data.get("steps_done"), event.data.get("steps_asked")
    epoch = event.data.get("epoch")
    where = f" in epoch {int(epoch) + 1}" if isinstance(epoch, int) and epoch >= 0 else ""
    text = f"the data ended{where} before the steps did" + (f": {done} of {asked} were done" if asked else "")
    headline = "The data ended" + (f" after {done} of {asked} steps{where}" if asked else " before the steps did")
    return Finding(
        "data-exhausted",
        0.8,
        (Evidence(text, "telemetry", event.at, None if done is None else float(done)),),
        headline=headline,
    )


def _fell_short(event: Event) -> bool:
    """Where no number of steps was asked for, an epoch ends with its data.

    Keras 3.15 warns then too, from the second epoch on of a dataset that does not know its length.
    Only an epoch that found no data at all was one too many.
    """
    return bool(event.data.get("steps_asked")) or event.data.get("steps_done") == 0


@reads(ENDING, find.reads, output=True)
def find_ending(window: Window) -> Finding | None:
    """For a run that failed afterwards: certain where its error says so, otherwise a guess."""
    found, how = find(window), ending(window)
    if found is None or how is None or how.code == 0:
        return None
    said = any(word in window.output(stream)[-LAST_WORDS:] for stream in window.streams() for word in RAISED)
    return replace(found, confidence=0.9 if said else 0.4)
