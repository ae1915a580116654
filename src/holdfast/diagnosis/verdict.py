"""Findings -> one Diagnosis: cause over symptom, evidence of all sources side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.causes import CAUSES, EXPLAINS, those
from holdfast.diagnosis import READS
from holdfast.diagnosis.batch_at_failure import with_batch
from holdfast.diagnosis.elastic import explained, of_the_first_to_fail
from holdfast.diagnosis.errors import find_errors
from holdfast.diagnosis.event_clues import find_in_events, with_unseen
from holdfast.diagnosis.memory_kinds import with_circumstances
from holdfast.diagnosis.noticed import noticed
from holdfast.diagnosis.plain_text import Line
from holdfast.diagnosis.reading.combined_clues import PROBABLY_MEMORY
from holdfast.diagnosis.reading.frameworks import framework_in
from holdfast.diagnosis.reading.log import clues_of, read_excerpt
from holdfast.diagnosis.reading.ranking import findings_of, first_seen
from holdfast.diagnosis.reading.scan import Excerpt
from holdfast.diagnosis.remedies import remedies_for
from holdfast.diagnosis.survived import rescued, started_again, went_on
from holdfast.diagnosis.weighing import GUESS, SURE, Moment, at_most, merged, ranked
from holdfast.inside.frameworks import BY_MODULE
from holdfast.recorded_events import Exit
from holdfast.vocabulary import Cause, Diagnosis, Finding, Window
from holdfast.windows import reads

A_GUESS, WELL_SEEN = 0.6, 0.8  # of a run's attempts: what the last one hardly tells, an earlier one may have told
SILENT_S = 90.0  # of a job that stands still, and may have reason to: a server, or one that waits for its turn
CANNOT_TELL_LOG = "The text does not say what ended the run."


@reads(READS)
def diagnose(window: Window, findings: Iterable[Finding], while_running: Sequence[Finding] = ()) -> Diagnosis:
    """Of one attempt: what detectors found of its end, and what they found while it went on."""
    outcome, code = _outcome(window)
    found_at_the_end = list(findings)
    stands = next((finding for finding in found_at_the_end if finding.standstill is not None), None)
    if outcome == "running":
        return _running(window, while_running, stands)
    if outcome == "completed":
        return _completed(window, while_running)
    led_there = {finding.cause: finding for finding in while_running if finding.cause in EXPLAINS}
    ended = [*led_there.values(), *(finding for finding in found_at_the_end if finding.cause not in led_there)]
    told = [*ended, *find_errors(window), *find_in_events(window)]
    known = merged(told if stands is None else _ended_for(stands, told, window))
    found = merged(with_unseen(window, with_batch(window, with_circumstances(window, known))))
    causes = [_in_words(finding, _framework(window)) for finding in ranked(found, _seen(found), only_text=False)]
    sure = [cause for cause in causes if cause.confidence >= SURE]
    if not sure:
        return Diagnosis(outcome, None, tuple(causes), summary=_cannot_tell(window, outcome, code, causes))
    if CAUSES[sure[0].id].asked_to_stop:
        outcome = "stopped"
    elif outcome == "unknown":
        outcome = "failed"
    return Diagnosis(outcome, sure[0], tuple(cause for cause in causes if cause is not sure[0]), sure[0].title)


def _running(window: Window, while_running: Sequence[Finding], stands: Finding | None) -> Diagnosis:
    if stands is None:
        silent = window.last("job.silent_s")
        quiet = silent is not None and (silent.value or 0.0) >= SILENT_S
        text = f" Nothing of it has moved for {silent.value:.0f} s: no output, no bytes." if silent and quiet else ""
        noticed_so_far = _noticed(window, while_running)
        return Diagnosis("running", None, summary=f"The run is still going.{text}", noticed=noticed_so_far)
    cause = _in_words(stands, _framework(window))
    return Diagnosis("stalled", cause, summary=cause.title, noticed=_noticed(window, while_running, cause))


def _ended_for(stands: Finding, findings: Iterable[Finding], window: Window) -> list[Finding]:
    """Whoever ended a job that stood still ended it for that, and what it says as it is ended is no cause."""
    by_hand = those("asked_to_stop") | {"killed", "terminal-closed", "unhandled-exception", "native-crash"}
    asked = bool(window.events("signal.received", "key.interrupt"))
    return [at_most(f, GUESS) if f.cause != stands.cause and (asked or f.cause in by_hand) else f for f in findings]


def _seen(findings: Sequence[Finding]) -> dict[str, Moment]:
    moments = {f.cause: [item.at for item in f.evidence if item.at is not None] for f in findings}
    return {cause: (min(at), 0) for cause, at in moments.items() if at}


def over_attempts(attempts: Sequence[Diagnosis], restarts: int) -> Diagnosis:
    """One verdict of a run that was started again: how the last attempt ended, and what the others died of."""
    last, earlier = attempts[-1], attempts[:-1]
    if not earlier:
        return last
    causes = [cause for attempt in reversed(earlier) for cause in (attempt.cause,) if cause is not None]
    if last.outcome in ("completed", "recovered"):
        causes += [last.cause] if last.cause is not None else []
        cause, also = (causes[0], causes[1:]) if causes else (None, [])
        times = "once" if restarts == 1 else f"{restarts} times"
        return Diagnosis(
            "recovered",
            cause,
            _each_once(also, cause),
            f"The run finished; it was started again {times}.",
            tuple(found for found in last.noticed if cause is None or found.id != cause.id),
        )
    leak = next((cause for cause in causes if last.cause is not None and _explains_again(cause, last.cause)), None)
    if leak is not None and last.cause is not None:
        # Started again, it did not live long enough to be seen leaking; it is the same program.
        found = replace(leak, evidence=(*leak.evidence, *last.cause.evidence))
        return replace(
            last, cause=found, also=_each_once([last.cause, *last.also, *causes], found), summary=found.title
        )
    surer = next((cause for cause in causes if cause.confidence >= WELL_SEEN), None)
    if surer is not None and last.outcome == "failed" and (last.cause is None or last.cause.confidence < A_GUESS):
        # It failed again, and this time with fewer words.
        others = [last.cause] if last.cause is not None else []
        return replace(last, cause=surer, also=_each_once([*others, *last.also, *causes], surer), summary=surer.title)
    return replace(last, also=_each_once([*last.also, *causes], last.cause))


def _explains_again(leak: Cause, end: Cause) -> bool:
    """Its data was loaded well before it leaked: what rises before a later attempt's first step is the way back there."""
    return leak.id in EXPLAINS and (end.id in EXPLAINS[leak.id] or end.id == "dataset-in-memory")


def _each_once(causes: Iterable[Cause], but: Cause | None) -> tuple[Cause, ...]:
    first = {cause.id: cause for cause in reversed(list(causes))}
    return tuple(cause for cause in reversed(first.values()) if but is None or cause.id != but.id)


def _completed(window: Window, while_running: Sequence[Finding]) -> Diagnosis:
    """An attempt that finished names what it had to survive, if anything."""
    if (rescue := rescued(window) or went_on(window, while_running) or started_again(window)) is None:
        return Diagnosis("completed", None, summary="The run finished.", noticed=_noticed(window, while_running))
    cause = _in_words(with_circumstances(window, [rescue])[-1], _framework(window))
    return Diagnosis("recovered", cause, summary=cause.title, noticed=_noticed(window, while_running, cause))


def _noticed(window: Window, while_running: Sequence[Finding], but: Cause | None = None) -> tuple[Cause, ...]:
    found = [finding for finding in noticed(window, while_running) if but is None or finding.cause != but.id]
    return tuple(_in_words(finding, _framework(window)) for finding in found)


def _first_to_fail(lines: Sequence[Line], findings: Sequence[Finding]) -> list[Finding]:
    """What torchrun's own report says comes first. Who killed a rank it does not know: where nothing else is known, memory."""
    told = [f for f in of_the_first_to_fail(lines) if f.confidence >= SURE and f.cause != "terminated"]
    first = [f if f.cause != "killed" else Finding("host-memory-exhausted", PROBABLY_MEMORY, f.evidence) for f in told]
    if not first or explained(first, findings):
        return [
            *findings,
            *(replace(f, confidence=GUESS) for f in first if f.cause not in {one.cause for one in findings}),
        ]
    known = {finding.cause for finding in first}
    rest = [replace(f, confidence=min(f.confidence, GUESS)) for f in findings]
    return [*first, *(finding for finding in rest if finding.cause not in known)]


def diagnose_log(excerpt: Excerpt) -> Diagnosis:
    """The same for a log of which nothing but the text is known."""
    lines = read_excerpt(excerpt)
    clues = clues_of(lines)
    found = ranked(_first_to_fail(lines, findings_of(clues, lines)), first_seen(clues), only_text=True)
    causes = [_in_words(finding, framework_in(lines)) for finding in found]
    if not causes or causes[0].confidence < SURE:
        nothing = "There is no text in it." if not any(line.text.strip() for line in lines) else CANNOT_TELL_LOG
        return Diagnosis("unknown", None, tuple(causes), nothing)
    outcome = "stopped" if CAUSES[causes[0].id].asked_to_stop else "failed"
    return Diagnosis(outcome, causes[0], tuple(causes[1:]), causes[0].title)


def _outcome(window: Window) -> tuple[str, int | None]:
    exit_event, aftermath = window.event(Exit.KIND), window.event("aftermath")
    if exit_event is not None:
        code = Exit.of(exit_event).code
        return ("completed" if code == 0 else "failed"), code
    if aftermath is not None and (aftermath.data.get("script_alive") or aftermath.data.get("watcher_alive")):
        return "running", None
    return "unknown", None


def _in_words(finding: Finding, framework: str) -> Cause:
    entry = CAUSES[finding.cause]
    title = finding.headline or entry.title
    evidence = tuple(sorted(finding.evidence, key=lambda item: (item.at is None, item.at or 0.0)))
    remedies = remedies_for(finding, framework)
    return Cause(finding.cause, title, round(finding.confidence, 2), evidence, remedies, entry.meaning, entry.sure)


def _framework(window: Window) -> str:
    names = [str(event.data["name"]) for event in window.events("framework", "framework.loaded")]
    on_purpose = [name for name in names if name not in BY_MODULE or BY_MODULE[name].imported_on_purpose]
    names = on_purpose or names
    return names[-1] if names else ""


def _cannot_tell(window: Window, outcome: str, code: int | None, guesses: Sequence[Cause]) -> str:
    if window.event("script.gone") is not None:
        return "The process has ended; how was not seen, since Holdfast did not start it."
    if outcome == "unknown":
        return "The record of this run has no ending, and nothing says what became of it."
    if guesses:
        return f"The script ended with exit code {code}; what was seen does not show the reason for certain."
    return f"The script ended with exit code {code} and left nothing that says why."
