"""Tells the user once, in one line with the reason, which part of Holdfast does not work in this run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.recorded_events import DetectorOff
from holdfast.vocabulary import NOT_WORKING, Decision, DecisionKind, Event, Policy

REASON_CHARACTERS = 200  # of a reason within a line
SENTENCE_CHARACTERS = 300  # a whole line with its reason
EVERYTHING = "*"  # the place of a failure after which the part inside is switched off as a whole
SAVED_ELSEWHERE = "another process of this run trains and saves already"  # that one's checkpoints work
WHERE = {"train": "training", "evaluate": "evaluation", "predict": "prediction"}
NO = "no: "  # how an ability begins that a framework's adapter does not have here
ABILITIES = {
    "telemetry": "look into training",
    "checkpoint": "keep checkpoints",
    "resume": "go on from them",
    "rescue": "survive running out of memory",
}
QUIET = (DetectorOff.KIND, "numerics.off")  # only in the record and in `why`: nothing the user could do about it
MEMORY = {"gpu": "GPU memory", "host": "memory"}


def decide(events: Iterable[Event], policy: Policy, decided_at: Mapping[str, float]) -> list[Decision]:
    """`observe` records and says nothing."""
    decisions: dict[str, Decision] = {}
    for event in events:
        told = _told(event)
        if told is None:
            continue
        key = f"{NOT_WORKING}{told[0]}"
        if key not in decided_at and key not in decisions:
            quiet = policy == Policy.OBSERVE or event.kind in QUIET
            decisions[key] = Decision(DecisionKind.NOTE if quiet else DecisionKind.WARN, key, told[1])
    return list(decisions.values())


def _told(event: Event) -> tuple[str, str] | None:
    """What it is about, and the line; None for an event that is about something else."""
    data, reason = event.data, _one_line(event.data.get("reason"))
    if event.kind == "capabilities":
        return _cannot(event)
    if event.kind == "checkpoint.failed" and reason != SAVED_ELSEWHERE:
        line = f"checkpoints are not working here: {reason}; training goes on, a restart would repeat what is not saved"
        return "checkpoints", line
    if event.kind == DetectorOff.KIND:
        off = DetectorOff.of(event)
        return off.key.removeprefix(NOT_WORKING), _one_line(off.sentence, SENTENCE_CHARACTERS)
    if event.kind == "inside.failed" and data.get("place") == EVERYTHING:
        return "inside:everything", f"Holdfast no longer looks into the training process: {reason}; training goes on"
    if event.kind == "inside.failed":
        place = _one_line(data.get("place"))
        return "inside", f"a part of Holdfast failed in the training process: {place}: {reason}; training goes on"
    if event.kind == "numerics.off":
        return "numerics", f"NaN and infinity in the weights are not looked for here: {reason}; training goes on"
    if event.kind == "step.not_seen":
        lost = "keep checkpoints, survive running out of memory or trace NaN"
        return "step", f"Holdfast cannot {lost} here: {reason}; training goes on"
    if event.kind == "memory.budget_not_held":
        memory = MEMORY.get(str(data.get("where")), "memory")
        return f"budget:{data.get('where')}", f"the {memory} budget is not held: {reason}"
    if event.kind == "rescue.refused":
        where = str(data.get("where", "train"))
        what = WHERE.get(where, where)
        return f"rescue:{where}", f"{what}: a batch that does not fit in memory is not run in smaller pieces: {reason}"
    return None


def _cannot(event: Event) -> tuple[str, str] | None:
    """What was asked for and cannot be done with this version of a framework: one line, with the first reason."""
    reasons = {ability: str(event.data.get(ability)) for ability in ABILITIES}
    lost = {ability: said.removeprefix(NO) for ability, said in reasons.items() if said.startswith(NO)}
    if not lost:
        return None
    what = " or ".join(words for ability, words in ABILITIES.items() if ability in lost)
    reason = _one_line(next(iter(lost.values())))
    # Keras and TensorFlow may lose the same by a name of one of them: that is one line.
    return f"capabilities:{'+'.join(lost)}", f"Holdfast cannot {what} here: {reason}; training goes on"


def _one_line(value: object, limit: int = REASON_CHARACTERS) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in str(value or "no reason was given")).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
