"""What figures printed along the way say: a loss that breaks, a loss of exactly zero, memory that only grows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from holdfast.diagnosis.plain_text import Line
from holdfast.vocabulary import Evidence, Finding

LOSS = re.compile(
    r"(?<![\w])(?:train_|training_|total_)?[Ll]oss['\"]?\s{0,3}(?:[:=]|is\b)?\s{0,3}(?:tensor\()?(?P<value>-?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|nan|inf))(?![\w.])",
    re.IGNORECASE,
)
RAN_AWAY = 1000.0  # the same for one that stayed finite
GROWN = 10.0  # times, from where it was to where it broke
FEW = 4
MEMORY = re.compile(
    r"\b(?:gpu_|max_|cuda_)?mem(?:ory)?(?:_used|_allocated|_mb)?['\"]?\s{0,2}[:=]\s{0,2}(?P<value>\d+(?:\.\d+)?)\s?(?P<unit>[MG]i?B?)?\b",
    re.IGNORECASE,
)
HELD = re.compile(
    r"\b(?:current|used|usage|allocated|reserved|in use)\b\s{0,2}[:=]?\s{0,2}(?P<value>\d+(?:\.\d+)?)", re.IGNORECASE
)
ON_CARD = re.compile(r"\b(?:gpu|cuda|vram)\b", re.IGNORECASE)
USAGE = re.compile(
    r"\b(?<!gpu )(?<!cuda )(?:memory|RAM|RSS)\b(?: (?:usage|used|use|consumption))?[^:=\n]{0,40}[:=]\s{0,2}(?P<value>\d+(?:\.\d+)?)\s?[KMG]i?B\b",
    re.IGNORECASE,
)
WAITED = re.compile(
    r"\b(?:batch_?|iter_?)?time:?\s{1,3}(?P<step>\d+\.\d+)(?:\s?\((?P<steps>\d+\.\d+)\))?.{0,80}?\bdata(?:_?time)?:?\s{1,3}(?P<data>\d+\.\d+)(?:\s?\((?P<datas>\d+\.\d+)\))?",
    re.IGNORECASE,
)
STARVED = 0.6  # of a step's time
LEAKED = 1.5  # times, from the first reading after warm-up to the last
READINGS = 8
MANY_READINGS = 12
GREW = 1.15
SELDOM, OFTEN = 0.1, 0.45  # of the readings
NORM = re.compile(
    r"\b(?:total_|global_)?grad(?:ient)?s?[ _]?norm['\"]?\s{0,3}(?:[:=]|is\b)?\s{0,3}(?:tensor\()?(?P<value>\d+\.?\d*(?:[eE][+-]?\d+)?|nan|inf)(?![\w.])",
    re.IGNORECASE,
)
HUGE_NORM = 1e4
SCALE = re.compile(
    r"loss[ _-]?scaler?\b.{0,20}?(?:to:?|[:=]|is)\s{0,3}(?P<value>\d+\.?\d*(?:[eE][+-]?\d+)?)(?![\w.])", re.IGNORECASE
)
SKIPPED = re.compile(
    r"overflow\b.{0,80}(?:skipping|reducing).{0,80}(?:loss )?scale|(?:reducing|decreasing|lowering).{0,20}loss scale",
    re.IGNORECASE,
)
LOG_SCALE = re.compile(r"\blg_loss_scale(?: to)?[\s|:=]{1,20}(?P<value>-?\d+(?:\.\d+)?)")
CUT_OUT = 40  # lines at most that a person cuts out of a log to show one thing
TINY_SCALE = 1 / 64  # it starts at 2**15 or more, and what is left of it now scales nothing
SCORE = re.compile(
    r"\b(?:acc|accuracy|\w+_accuracy)\b['\"]?\s{0,2}[:=]\s{0,2}(?P<value>\d\.\d+(?:e-\d+)?)", re.IGNORECASE
)
BELOW = -1.0  # label smoothing and rounding take it no further


def of_the_loss(lines: Sequence[Line]) -> list[Finding]:
    values: list[tuple[float, Line]] = []
    for line in lines:
        if "oss" in line.text and (found := LOSS.search(line.text)):
            values.append((float(found["value"]), line))
    broken = next((i for i, (value, _) in enumerate(values) if not math.isfinite(value)), None)
    if broken is None:
        return _of_a_loss_that_runs_away(values)
    line = values[broken][1]
    seen = [value for value, _ in values[:broken]]
    first_nan = Evidence(
        f"line {line.number}: the loss is {values[broken][0]}: {line.text.strip()[:120]}", "log", line.at
    )
    if len(seen) >= FEW:
        start, last = median(abs(value) for value in seen[: max(2, len(seen) // 3)]), abs(seen[-1])
        if start > 0 and last > GROWN * start:
            grew = Evidence(f"it had grown from {start:.4g} to {last:.4g} before", "log", line.at)
            return [
                Finding("learning-rate-too-high", 0.66, (grew, first_nan)),
                Finding("exploding-gradients", 0.45, (grew, first_nan)),
            ]
        steady = Evidence(f"it was finite and steady before ({seen[-1]:.4g})", "log", line.at)
        return [
            Finding("invalid-math", 0.42, (first_nan, steady)),
            Finding("bad-input-values", 0.42, (first_nan, steady)),
            Finding("exploding-gradients", 0.4, (first_nan, steady)),
        ]
    return [
        Finding("bad-input-values", 0.45, (first_nan,)),
        Finding("learning-rate-too-high", 0.43, (first_nan,)),
        Finding("exploding-gradients", 0.4, (first_nan,)),
    ]


def _of_a_loss_that_runs_away(read: Sequence[tuple[float, Line]]) -> list[Finding]:
    """It never became NaN, and is a thousand times what it was."""
    values = [abs(value) for value, _ in read]
    if len(values) < 2 * FEW - 2:
        return []
    start, last = median(values[: max(2, len(values) // 3)]), values[-1]
    rising = sum(after > before for before, after in pairwise(values)) >= 0.7 * (len(values) - 1)
    if not (rising and start > 0 and last > RAN_AWAY * start and last > RAN_AWAY):
        return []
    line = read[-1][1]
    grew = Evidence(f"line {line.number}: the loss had grown from {start:.4g} to {last:.4g}", "log", line.at)
    return [Finding("learning-rate-too-high", 0.64, (grew,)), Finding("exploding-gradients", 0.45, (grew,))]


def of_the_gradients(lines: Sequence[Line]) -> list[Finding]:
    """The norm as the log prints it: ten times as large at the end as at the beginning, and huge."""
    read = _readings(lines, "orm", NORM)
    values = [value for value, _ in read]
    if len(values) < FEW:
        return []
    start, last = median(values[: max(2, len(values) // 3)]), values[-1]
    rising = sum(after > before for before, after in pairwise(values)) >= 0.7 * (len(values) - 1)
    if math.isfinite(last) and not (last > HUGE_NORM and last > GROWN * start and rising):
        return []
    if not math.isfinite(last) and not (math.isfinite(start) and max(filter(math.isfinite, values)) > GROWN * start):
        return []
    line = read[-1][1]
    grew = Evidence(f"line {line.number}: the gradient's norm grew from {start:.4g} to {last:.4g}", "log", line.at)
    return [Finding("exploding-gradients", 0.74, (grew,))]


def of_the_loss_scale(lines: Sequence[Line]) -> list[Finding]:
    """Halved again and again until it scales nothing: half precision overflows whatever is done."""
    powers = _readings(lines, "lg_loss_scale", LOG_SCALE)
    if powers and powers[-1][0] < 0:  # of two; it starts at 20
        line = powers[-1][1]
        told = f"line {line.number}: the loss scale fell to 2 to the power of {powers[-1][0]:g}"
        return [Finding("mixed-precision-overflow", 0.64, (Evidence(told, "log", line.at),))]
    read = _readings(lines, "cale", SCALE)
    values = [value for value, _ in read]
    if len(values) < FEW or values[-1] > TINY_SCALE or any(after > before for before, after in pairwise(values)):
        return []
    line = read[-1][1]
    fell = Evidence(f"line {line.number}: the loss scale fell from {values[0]:g} to {values[-1]:g}", "log", line.at)
    return [Finding("mixed-precision-overflow", 0.76, (fell,))]


def of_steps_that_overflow(lines: Sequence[Line]) -> list[Finding]:
    """Somebody cut out just this: one step after the other is skipped, down to the end of the text.

    The first steps of a healthy run are skipped too, until the scale fits; reports of training follow them.
    """
    said = [line for line in lines if line.text.strip()]
    skipped = [line for line in said if SKIPPED.search(line.text)]
    if len(said) > CUT_OUT or len(skipped) < FEW or not any(SKIPPED.search(line.text) for line in said[-2:]):
        return []
    told = f"line {skipped[0].number}: {len(skipped)} times a step was skipped because half precision overflowed"
    return [Finding("mixed-precision-overflow", 0.62, (Evidence(told, "log", skipped[0].at),))]


def _readings(lines: Sequence[Line], mark: str, form: re.Pattern[str]) -> list[tuple[float, Line]]:
    found = ((form.search(line.text), line) for line in lines if mark in line.text)
    return [(float(match["value"]), line) for match, line in found if match]


def of_a_loss_that_is_zero(lines: Sequence[Line]) -> list[Finding]:
    """Exactly zero while the accuracy is poor: softmax over one unit, or labels the loss cannot see."""
    zero = []
    for line in lines:
        loss, score = (LOSS.search(line.text), SCORE.search(line.text)) if "oss" in line.text else (None, None)
        if loss and score:
            zero.append((float(loss["value"]) == 0.0 and float(score["value"]) < 0.9, line))
    if len(zero) < 2 or not all(is_zero for is_zero, _ in zero):
        return []
    line = zero[0][1]
    text = f"line {line.number}: the loss is exactly 0 and the accuracy poor: {line.text.strip()[:120]}"
    return [Finding("output-loss-mismatch", 0.62, (Evidence(text, "log", line.at),))]


def of_a_loss_below_zero(lines: Sequence[Line]) -> list[Finding]:
    """Beside an accuracy it is a cross-entropy, which no probability takes below zero: the labels are none."""
    below = []
    for line in lines:
        loss, score = (LOSS.search(line.text), SCORE.search(line.text)) if "oss" in line.text else (None, None)
        if loss and score:
            below.append((float(loss["value"]) < BELOW and float(score["value"]) < 0.9, line))
    if not below or not all(is_below for is_below, _ in below[-3:]):
        return []
    line = below[-1][1]
    told = f"line {line.number}: a loss below zero beside an accuracy: {line.text.strip()[:120]}"
    return [Finding("output-loss-mismatch", 0.64, (Evidence(told, "log", line.at),))]


def of_the_waiting(lines: Sequence[Line]) -> list[Finding]:
    """Loops that print what a step took and how much of it went by until its batch was there."""
    read = [(found, line) for line in lines if "ata" in line.text and (found := WAITED.search(line.text))]
    if len(read) < FEW - 1:
        return []
    steps, datas = (sum(float(found[name]) for found, _ in read) for name in ("step", "data"))
    last, line = read[-1]
    if last["steps"] and last["datas"]:
        steps, datas = float(last["steps"]), float(last["datas"])
    if steps <= 0 or datas < STARVED * steps:
        return []
    waited = Evidence(
        f"line {line.number}: {100 * datas / steps:.0f} % of a step goes by waiting for data", "log", line.at
    )
    return [Finding("input-starvation", 0.66, (waited,))]


def of_memory_that_grows(lines: Sequence[Line]) -> list[Finding]:
    """Memory as the script prints it, nearly every time more than before: the process's, or the card's."""
    host = _readings(lines, "em", USAGE) or _readings(lines, "RSS", USAGE) or _readings(lines, "RAM", USAGE)
    card = [line for line in lines if "em" in line.text and ON_CARD.search(line.text)]
    for cause, read in (("host-memory-leak", host), ("gpu-memory-leak", _readings(card, "em", HELD))):
        values = [value for value, _ in read[1:]]
        if not _grew_all_the_time(values):
            continue
        line = read[-1][1]
        told = f"line {line.number}: memory as printed grew all the time, from {values[0]:g} to {values[-1]:g}"
        return [Finding(cause, 0.62 if values[-1] >= LEAKED * values[0] else 0.56, (Evidence(told, "log", line.at),))]
    return []


def _grew_all_the_time(values: Sequence[float]) -> bool:
    """By half; or, over many readings, by less but as fast at the end as at the beginning, as nothing that settles."""
    if len(values) < READINGS - 2 or values[0] <= 0:
        return False
    pairs = len(values) - 1
    fell = sum(after < before for before, after in pairwise(values))
    rose = sum(after > before for before, after in pairwise(values))
    if fell > SELDOM * pairs or rose < OFTEN * pairs:
        return False
    if values[-1] >= LEAKED * values[0]:
        return True
    half = values[len(values) // 2]
    going_on = values[-1] - half >= 0.7 * (half - values[0])
    return len(values) >= MANY_READINGS and values[-1] >= GREW * values[0] and going_on


def of_the_memory(lines: Sequence[Line]) -> Evidence | None:
    """Memory as the log prints it, which never fell and grew by half."""
    read = []
    for line in lines:
        found = MEMORY.search(line.text) if "em" in line.text else None
        if found:
            read.append((float(found["value"]), line))
    values = [value for value, _ in read[2:]]
    if len(values) < READINGS or values[0] <= 0 or values[-1] < LEAKED * values[0]:
        return None
    steps = sum(after > before for before, after in pairwise(values))
    if any(after < before for before, after in pairwise(values)) or steps < len(values) / 2:
        return None
    return Evidence(f"memory as printed grew all the time, from {values[0]:g} to {values[-1]:g}", "log", read[-1][1].at)
