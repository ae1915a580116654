"""The first value that is no number, and what made it: the data, an operation, half precision, or updates that ran away."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.detectors.numerics.facts import (
    HEALTH,
    NON_FINITE,
    READS,
    SETUP,
    Health,
    Part,
    Setup,
    figure,
    finite,
    number,
    rate_details,
)
from holdfast.recorded_events import WentOn
from holdfast.vocabulary import Event, Evidence, Finding, Window
from holdfast.windows import reads

UNDEFINED = (
    "log", "log2", "log10", "log1p", "div", "truediv", "realdiv", "divide", "reciprocal", "sqrt", "rsqrt", "pow", "acos", "asin",
    "atanh", "acosh", "norm", "xlogy", "digamma", "lgamma", "cholesky", "inverse", "svd", "eigh", "logdet", "det", "std", "var",
    "mod", "fmod", "remainder", "expm1", "cosine_similarity", "normalize",
)  # fmt: skip

OF_GROWTH = frozenset({"learning-rate-too-high", "exploding-gradients", "unscaled-input", "unscaled-target"})


@dataclass(frozen=True, slots=True)
class Thresholds:
    grown: float = 30.0  # times: a loss, or a gradient norm, before it broke
    update_ratio: float = 0.1  # of the weights, in one step: a rate beyond what any model takes
    rate: float = 0.1  # of an optimizer that scales its updates itself
    plain_rate: float = 1.0  # of one that does not
    jump: float = 5.0  # of the rate, right before
    input_scale: float = 1e3
    target_scale: float = 1e3
    at_usual_rates: float = 50.0  # a scale that explains it, where the rate is an ordinary one
    fed: float = 1e15  # a value this large, all at once


@dataclass(frozen=True, slots=True)
class Incident:
    """One event of the training process, read."""

    at: float
    step: int
    seen_at: int
    seen_in: str
    origin: str
    reproduced: bool | None
    replay: str
    input: Part
    place: Part
    values: str
    before: Part
    half: str
    skipped: bool

    @classmethod
    def of(cls, event: Event) -> Incident:
        data = event.data
        part = partial(Part.of, data)
        step = int(number(data.get("step")) or 0)
        reproduced = data.get("reproduced")
        return cls(
            event.at, step, int(number(data.get("seen_at")) or step), str(data.get("seen_in") or "loss"),
            str(data.get("origin") or "unknown"), reproduced if isinstance(reproduced, bool) else None,
            str(data.get("replay") or ""), part("input"), part("place"), str(data.get("values") or ""), part("before"),
            str(data.get("half") or ""), bool(data.get("skipped_by_scaler")),
        )  # fmt: skip

    @property
    def op(self) -> str:
        return self.place.text("op").lower().rstrip("0123456789").removesuffix("backward").lstrip("_")

    def grew(self, name: str) -> float:
        """How many times as large the last reading before it was as an ordinary one."""
        course = [finite(row[1]) for row in self.before[name] or () if isinstance(row, Sequence) and len(row) > 1]
        known = [abs(value) for value in course if value is not None]
        if any(value is None for value in course[:-1]) or len(known) < 2:
            return 1.0
        usual = sorted(known)[len(known) // 4] or 1e-30
        return max(known[-2:]) / usual


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> list[Finding]:
    """One finding a cause, by the first incident that has it."""
    found: dict[str, Finding] = {}
    setups = [Setup.of(event) for event in window.events(SETUP)]
    went_on = window.events(WentOn.KIND)
    events = window.events(NON_FINITE)
    traced = [event for event in events if event.data.get("origin") != "unknown"]
    for event in traced or events:  # what was traced once explains what could not be
        incident = Incident.of(event)
        setup = next((s for s in reversed(setups) if s.at <= event.at), setups[0] if setups else None)
        sample = _last_sample(window, event)
        if sample is not None and incident.before["update_ratio"] is None:
            incident.before["update_ratio"] = sample.moved
        cause, confidence = _cause(incident, setup, thresholds)
        after = [one for one in went_on if one.at >= event.at]
        if cause not in found and not (cause in OF_GROWTH and OF_GROWTH & found.keys()):
            evidence = _evidence(incident, setup, sample, after)
            found[cause] = Finding(
                cause,
                confidence,
                evidence,
                _details(incident, setup),
                headline=_headline(incident, went_on=bool(after)),
                subject=WentOn.SUBJECT,
            )
    return list(found.values())


def _cause(incident: Incident, setup: Setup | None, thresholds: Thresholds) -> tuple[str, float]:
    if incident.seen_in == "metric" and incident.origin not in ("input", "target", "forward", "loss", "backward"):
        return "invalid-math", 0.4  # a metric may be undefined by design: of a class that is not there, say
    if incident.origin in ("input", "target"):
        return "bad-input-values", 0.95
    if incident.input["rows"] and not _runs_away(incident, setup, thresholds):
        return "bad-input-values", 0.85  # finite, and out of all proportion to the other rows of the batch
    if setup is not None and _labels_too_large(setup) and incident.origin in ("loss", "forward", "unknown"):
        return "label-out-of-range", 0.9
    if incident.skipped or (incident.half == "float16" and not _runs_away(incident, setup, thresholds)):
        return "mixed-precision-overflow", 0.85
    if _undefined(incident) and not (_runs_away(incident, setup, thresholds) and _of_growth(incident)):
        return "invalid-math", 0.9 if incident.place.text("op") else 0.8
    steady = not _runs_away(incident, setup, thresholds) and not (setup is not None and setup.recurrent)
    if steady and incident.origin in ("forward", "loss", "backward") and incident.op:
        return ("bad-input-values", 0.7) if _overflowed_at_once(incident, thresholds) else ("invalid-math", 0.75)
    if incident.origin in ("weights", "unknown") and not _runs_away(incident, setup, thresholds):
        return "invalid-math", 0.55  # something was undefined, and it was seen too late to say what
    return _growth(incident, setup, thresholds)


def _labels_too_large(setup: Setup) -> bool:
    shape, highest, least = setup.output.shape(), setup.targets.number("max"), setup.targets.number("min")
    if setup.family not in ("sparse", "nll") or len(shape) < 2 or highest is None or not setup.targets["integers"]:
        return False
    units = shape[1] if setup.family == "nll" or "cross_entropy" in setup.loss.text("name") else shape[-1]
    return highest >= units or (least is not None and least < 0 and least not in (-1.0, -100.0))


def _undefined(incident: Incident) -> bool:
    """An operation that has no result for what it was given, and not one whose result was too large."""
    return incident.origin in ("forward", "loss", "backward") and incident.op in UNDEFINED


def _overflowed_at_once(incident: Incident, thresholds: Thresholds) -> bool:
    """With ordinary weights, and losses that were steady until then: only what was fed can be so large."""
    sizes = [abs(float(text)) for text in re.findall(r"-?\d+(?:\.\d+)?e\+\d+", incident.values)]
    weight = finite(incident.before["largest_weight"])
    return bool(sizes) and max(sizes) >= thresholds.fed and weight is not None and weight < 1e3


def _of_growth(incident: Incident) -> bool:
    """A root or quotient of values that are themselves the end of something that ran away."""
    return incident.grew("losses") > 1e3 or (finite(incident.before["largest_weight"]) or 0.0) > 1e6


def _runs_away(incident: Incident, setup: Setup | None, thresholds: Thresholds) -> bool:
    if max(incident.grew("losses"), incident.grew("gradient_norms")) >= thresholds.grown:
        return True
    return _rate_is_absurd(incident, setup, thresholds)


def _rate_is_absurd(incident: Incident, setup: Setup | None, thresholds: Thresholds) -> bool:
    """By itself, or by what it does to the weights."""
    ratio = finite(incident.before["update_ratio"])
    if ratio is not None and ratio >= thresholds.update_ratio:
        return True
    return _is_absurd(_rate(incident, setup), setup, thresholds)


def _rate(incident: Incident, setup: Setup | None) -> float:
    return finite(incident.before["rate"]) or (setup.rate if setup else None) or 0.0


def _is_absurd(rate: float, setup: Setup | None, thresholds: Thresholds) -> bool:
    return rate >= (thresholds.rate if setup is not None and setup.adaptive else thresholds.plain_rate)


def _growth(incident: Incident, setup: Setup | None, thresholds: Thresholds) -> tuple[str, float]:
    """Nothing was undefined: something grew until it overflowed. What made it grow?"""
    rate, was = finite(incident.before["rate"]), finite(incident.before["rate_was"])
    if rate and was and rate >= thresholds.jump * was:
        return "learning-rate-too-high", 0.9
    if setup is not None and setup.input_scale >= thresholds.input_scale and not setup.normalised:
        return "unscaled-input", 0.8
    if setup is not None and setup.target_scale >= thresholds.target_scale:
        return "unscaled-target", 0.8
    usual = setup is not None and not _is_absurd(_rate(incident, setup), setup, thresholds)
    if usual and setup is not None and not setup.normalised and setup.input_scale >= thresholds.at_usual_rates:
        return "unscaled-input", 0.75
    if setup is not None and setup.recurrent and not _is_absurd(_rate(incident, setup), setup, thresholds):
        return "exploding-gradients", 0.85
    if _rate_is_absurd(incident, setup, thresholds):
        return "learning-rate-too-high", 0.85
    steep = incident.grew("gradient_norms") / max(1.0, incident.grew("losses"))
    if incident.seen_in == "gradient" or (incident.origin == "backward" and incident.op not in UNDEFINED) or steep > 10:
        return "exploding-gradients", 0.75
    if incident.grew("losses") >= 3.0 or incident.origin == "update":
        return "learning-rate-too-high", 0.75
    return "exploding-gradients", 0.6


def _headline(incident: Incident, went_on: bool) -> str:
    whole = {"loss": "The loss", "gradient": "A gradient", "weights": "The weights", "metric": "A metric",
             "slot": "The optimizer's memory", "output": "The model's output",
             "statistics": "The running statistics"}  # fmt: skip
    several = incident.seen_in in ("weights", "statistics")
    what = whole.get(incident.seen_in, "A value")
    if went_on:
        return f"{what} {'were' if several else 'was'} not finite in step {incident.step}; that was undone, and the run went on"
    return f"{what} {'are' if several else 'is'} not finite from step {incident.step} on"


def _last_sample(window: Window, event: Event) -> Health | None:
    before = [one for one in window.events(HEALTH) if one.at <= event.at]
    return Health.of(before[-1]) if before else None


def _evidence(
    incident: Incident, setup: Setup | None, sample: Health | None, went_on: Sequence[Event]
) -> tuple[Evidence, ...]:
    texts = [_first_line(incident)]
    if incident.input["rows"] and incident.origin not in ("input", "target"):
        texts.append(f"of that batch, {_of_data(incident)}; the other rows hold less than a millionth of it")
    if incident.place:
        texts.append(_where(incident))
    half = incident.half or (setup.half if setup is not None else "")
    if half:
        texts.append(f"it computes in {half}, which holds up to {'65,504' if half == 'float16' else '3.4e38'}")
    texts += _course(incident, setup)
    if sample is not None and incident.origin not in ("input", "target"):
        texts += _largest_gradient(sample)
    if incident.replay:
        texts.append(incident.replay)
    told = [Evidence(text, "telemetry", incident.at, float(incident.step)) for text in texts if text]
    told += [Evidence(WentOn.of(event).text, "telemetry", event.at) for event in went_on]
    first: dict[str, Evidence] = {}  # of each text: the same rows may come again in each epoch
    for one in told:
        first.setdefault(one.text, one)
    return tuple(first.values())[:10]


def _largest_gradient(sample: Health) -> list[str]:
    known = [group for group in sample.groups if group.gradient is not None and math.isfinite(group.gradient)]
    if len(known) < 2:
        return []
    largest = max(known, key=lambda group: group.gradient or 0.0)
    return [f"the largest gradient at step {sample.step}: of {largest.name} (norm {figure(largest.gradient)})"]


def _first_line(incident: Incident) -> str:
    late = f" (noticed at step {incident.seen_at})" if incident.seen_at > incident.step else ""
    seen = {"loss": "the loss", "gradient": "a gradient", "weights": "weights", "metric": "a metric",
            "slot": "the optimizer's running means", "output": "the model's output",
            "statistics": "running statistics of a normalisation"}.get(incident.seen_in, "a value")  # fmt: skip
    begun = f"{seen} became NaN or infinite in step {incident.step}{late}"
    if incident.origin in ("input", "target"):
        return f"{begun}: {_of_data(incident)}"
    words = {
        "forward": "it began in the forward pass",
        "loss": "it began in the loss function, with an output of the model that was finite",
        "backward": "it began in the backward pass; the loss itself was finite",
        "update": "it began with the optimizer's update; the gradients were finite",
        "weights": "the weights were not finite before",
    }.get(incident.origin, "where it began is not known")
    return f"{begun}: {words}"


def _of_data(incident: Incident) -> str:
    data = incident.input
    what = data.text("what") or "NaN"
    whose = (
        "its labels hold" if incident.origin == "target" else f"its input {data.text('name')} holds".replace("  ", " ")
    )
    rows, columns, indices = (list(data[name] or ()) for name in ("rows", "columns", "indices"))
    count = int(finite(data["row_count"]) or len(rows))
    text = f"{whose} {what} in {count} {'row' if count == 1 else 'rows'}"
    if rows:
        text += f" ({'row' if count == 1 else 'rows'} {_listed(rows, count)} of the batch"
        text += f"; {_listed(indices, count)} of the data set)" if indices else ")"
    elif indices:
        text += f" ({_listed(indices, count)} of the data set)"
    if columns:
        text += f", column{'s' if len(columns) > 1 else ''} {_listed(columns, len(columns))}"
    if data["source_clean"]:
        text += "; the data set itself is finite there: what is done to a row on its way makes it so"
    return text


def _listed(items: Sequence[Any], count: int) -> str:
    shown = ", ".join(str(item) for item in items[:5])
    return shown + (", …" if count > 5 or len(items) > 5 else "")


def _where(incident: Incident) -> str:
    place = incident.place
    op, layer, line, code = (place.text(name) for name in ("op", "layer", "line", "code"))
    parts = [f"the first operation with such a result: {op}" if op else "", f"in layer {layer}" if layer else ""]
    text = " ".join(part for part in parts if part)
    if incident.values:
        text += f" ({incident.values})" if text else incident.values
    if line:
        text += f", at {line}" + (f": {code.strip()}" if code else "")
    if place.text("dtype") in ("float16", "bfloat16"):
        text += f", in {place.text('dtype')}"
    return text


def _course(incident: Incident, setup: Setup | None) -> list[str]:
    texts = []
    losses = [finite(row[1]) for row in incident.before["losses"] or () if len(row) > 1]
    known = [loss for loss in losses if loss is not None]
    if len(known) >= 2:
        texts.append("the loss before: " + ", ".join(figure(loss) for loss in known[-6:]))
    norms = [finite(row[1]) for row in incident.before["gradient_norms"] or () if len(row) > 1]
    sound = [norm for norm in norms if norm is not None]
    if len(sound) >= 2:
        texts.append("the norm of the gradient before: " + ", ".join(figure(norm) for norm in sound[-6:]))
    rate, was = finite(incident.before["rate"]), finite(incident.before["rate_was"])
    ratio = finite(incident.before["update_ratio"])
    if rate is not None:
        changed = f" (it was {figure(was)} before)" if was and not math.isclose(was, rate) else ""
        moved = f"; one update moves the weights by {ratio:.1%}" if ratio is not None else ""
        schedule = setup.optimizer.text("schedule") if setup is not None else ""
        of = f" of the schedule {schedule}" if schedule else ""
        texts.append(f"the learning rate: {figure(rate)}{changed}{of}{moved}")
    if setup is not None and setup.input_scale >= 1e3:
        texts.append(f"the input reaches {figure(setup.input_scale)}")
    if setup is not None and setup.target_scale >= 1e3:
        texts.append(
            f"the targets reach {figure(setup.targets.number('max'))} (mean {figure(setup.targets.number('mean'))})"
        )
    return texts


def _details(incident: Incident, setup: Setup | None) -> dict[str, Any]:
    return rate_details(setup, lower=_rate(incident, setup) / 10)
