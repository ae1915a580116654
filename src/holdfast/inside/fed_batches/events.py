"""The facts about fed batches that are told. What they mean is for the detectors to say."""

from __future__ import annotations

from ..numerics.events import ROWS_LEFT_OUT, tell_went_on
from ..telemetry import Recorder
from .forms import Changed
from .labels import BadLabels, in_words

FORM, LABELS = "data.form_changed", "data.bad_labels"
OF_LABELS = "fed with bad labels"  # what the step was, in closing words
TELLINGS = 20  # one by one


def tell_form(recorder: Recorder, changed: Changed) -> None:
    recorder.event(FORM, step=recorder.steps + 1, **changed)


def tell_labels(recorder: Recorder, bad: BadLabels, sure: bool) -> None:
    """`sure`: the loss is given these very numbers."""
    recorder.event(LABELS, step=recorder.steps + 1, sure=sure, **bad)


def tell_left_out(recorder: Recorder, bad: BadLabels, times: int) -> None:
    if times <= TELLINGS or times % TELLINGS == 0:
        step = recorder.steps + 1
        text = f"left out of the batch of step {step}: {in_words(bad)}"
        tell_went_on(recorder, step, ROWS_LEFT_OUT, text, 0, times, OF_LABELS)
