"""The first value that is no number, and what made it: the data, an operation, half precision, or updates that ran away."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from holdfast.detectors.numerics.facts import (
    HEALTH,
    NON_FINITE,
    READS,
    SETUP,
    Setup,
    figure,
    rate_details,
    smaller_rate,
)
from holdfast.detectors.numerics.incident import Incident, first_line, of_data, where
from holdfast.detectors.numerics.samples import Health, finite
from holdfast.recorded_events import WentOn
from holdfast.vocabulary import Event, Evidence, Finding, Window
from holdfast.windows import reads

UNDEFINED = (
    "log", "log2", "log10", "log1p", "div", "truediv", "realdiv", "divide", "reciprocal", "sqrt", "rsqrt", "pow", "acos", "asin",
    "atanh", "acosh", "norm", "xlogy", "digamma", "lgamma", "cholesky", "inverse", "svd", "eigh", "logdet", "det", "std", "var",
    "mod", "fmod", "remainder", "expm1", "cosine_similarity", "normalize",
)  # fmt: skip

# Given ordinary numbers they do not overflow: what they made of them is undefined, such as a mean over nothing.
BOUNDED = ("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
           "binary_cross_entropy_with_logits", "mean", "softmax", "log_softmax", "layer_norm", "batch_norm", "ctc_loss", "add",
           "sub", "mul", "sum")  # fmt: skip
NO_LABEL = "no label that counts"  # the words of the training process; the recipe is chosen by them
WHOLE = "all rows of the batch have it, in column"  # the recipe is chosen by it
LATEST = 8  # samples
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
    ordinary: float = 100.0  # in any precision, squared and summed up
    absurd_input: float = 1e6  # a code for "broken", no pixel, price or count


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> list[Finding]:
    """One finding a cause, by the first incident that has it."""
    found: dict[str, Finding] = {}
    setups = [Setup.of(event) for event in window.events(SETUP)]
    went_on = [one for one in window.events(WentOn.KIND) if WentOn.of(one).was == WentOn.NOT_FINITE]
    events = window.events(NON_FINITE)
    traced = [event for event in events if event.data.get("origin") != "unknown"]
    for event in traced or events:  # what was traced once explains what could not be
        incident = Incident.of(event)
        setup = next((s for s in reversed(setups) if s.at <= event.at), setups[0] if setups else None)
        sample = _last_sample(window, event)
        if sample is not None and incident.before["update_ratio"] is None:
            incident.before["update_ratio"] = sample.moved
        was = _rate_before_a_jump(window, event, _rate(incident, setup), thresholds)
        if was is not None:
            incident.before["rate_was"] = was
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
        # A metric may be undefined by design, of a class that is not there, say; less so where it had numbers before.
        return "invalid-math", 0.55 if incident.had_numbers else 0.4
    if incident.origin in ("input", "target"):
        return "bad-input-values", 0.95
    if incident.input["rows"] and not _runs_away(incident, setup, thresholds):
        return "bad-input-values", 0.85  # finite, and out of all proportion to the other rows of the batch
    if setup is not None and _labels_too_large(setup) and incident.origin in ("loss", "forward", "unknown"):
        return "label-out-of-range", 0.9
    if incident.origin == "constant":
        return "invalid-math", 0.85
    if incident.origin == "weights" and incident.step < 1:
        return "bad-initialization", 0.85  # NaN before the first step: in what they were made of
    if incident.skipped or (_is_half(incident) and not _runs_away(incident, setup, thresholds)):
        return "mixed-precision-overflow", 0.85
    if incident.values.startswith(NO_LABEL) or _of_ordinary_numbers(incident, thresholds):
        return "invalid-math", 0.85
    if _undefined(incident) and not (_runs_away(incident, setup, thresholds) and _of_growth(incident)):
        return "invalid-math", 0.9 if incident.place.text("op") else 0.8
    steady = not _runs_away(incident, setup, thresholds) and not (setup is not None and setup.recurrent)
    if steady and incident.origin in ("forward", "loss", "backward") and incident.op:
        return _without_growth(incident, setup, thresholds)
    if _divides_by_zero(incident, setup):
        return "invalid-math", 0.85
    if incident.origin in ("weights", "unknown") and not _runs_away(incident, setup, thresholds):
        return "invalid-math", 0.55  # something was undefined, and it was seen too late to say what
    return _growth(incident, setup, thresholds)


def _divides_by_zero(incident: Incident, setup: Setup | None) -> bool:
    """An update, by an optimizer that divides by what may be 0: rows of a table that no batch had, units that are dead."""
    by_update = incident.origin in ("weights", "update")
    return by_update and setup is not None and setup.adaptive and setup.optimizer.number("epsilon") == 0.0


def _is_half(incident: Incident) -> bool:
    """What computes in it is a fact of the whole model, or of the operation: a loop may cast, or have layers of several kinds."""
    return incident.half == "float16" or (incident.place.text("dtype") == "float16" and not _undefined(incident))


def _labels_too_large(setup: Setup) -> bool:
    shape, highest, least = setup.output.shape(), setup.targets.number("max"), setup.targets.number("min")
    if setup.family not in ("sparse", "nll") or len(shape) < 2 or highest is None or not setup.targets["integers"]:
        return False
    chosen = setup.loss.number("classes")  # what the script makes of the model's output may have another shape
    units = chosen or (shape[1] if setup.family == "nll" or "cross_entropy" in setup.loss.text("name") else shape[-1])
    return highest >= units or (least is not None and least < 0 and least not in (-1.0, -100.0))


def _undefined(incident: Incident) -> bool:
    """An operation that has no result for what it was given, and not one whose result was too large."""
    if (_size_told(incident) or 0.0) >= Thresholds().fed:
        return False  # a power or quotient of it
    return incident.origin in ("forward", "loss", "backward") and incident.op in UNDEFINED


def _of_ordinary_numbers(incident: Incident, thresholds: Thresholds) -> bool:
    size = _size_told(incident)
    return (
        size is not None
        and size < thresholds.ordinary
        and incident.origin in ("forward", "loss")
        and incident.op in BOUNDED
    )


def _size_told(incident: Incident) -> float | None:
    """The largest number the operation was given, where nothing more telling is known of it."""
    found = re.match(r"(-?[\d.]+(?:e[+-]?\d+)?) in (?:b?float(?:16|32|64))$", incident.values)
    return abs(float(found.group(1))) if found is not None else None


def _overflowed_at_once(incident: Incident, thresholds: Thresholds) -> bool:
    """With ordinary weights, and losses that were steady until then: only what was fed can be so large."""
    sizes = [abs(float(text)) for text in re.findall(r"-?\d+(?:\.\d+)?e\+\d+", incident.values)]
    weight = finite(incident.before["largest_weight"])
    return bool(sizes) and max(sizes) >= thresholds.fed and weight is not None and weight < 1e3


def _without_growth(incident: Incident, setup: Setup | None, thresholds: Thresholds) -> tuple[str, float]:
    if not _overflowed_at_once(incident, thresholds):
        return "invalid-math", 0.75
    fed = finite(incident.before["largest_input"])
    if fed is None or fed >= thresholds.absurd_input:
        return "bad-input-values", 0.7
    if fed >= thresholds.at_usual_rates and not (setup is not None and setup.normalised):
        return "unscaled-input", 0.75  # an exponential or a power of it
    return "invalid-math", 0.75


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


def _rate_before_a_jump(window: Window, event: Event, rate: float, thresholds: Thresholds) -> float | None:
    """Of one step to the next, among the latest samples: a warm-up climbs in many."""
    earlier = [Health.of(one).rate for one in window.events(HEALTH) if one.at <= event.at][-LATEST:]
    rates = [*(each for each in earlier if each), rate]
    return next(
        (was for was, now in pairwise(rates) if now >= thresholds.jump * was and rate >= thresholds.jump * was), None
    )


def _evidence(
    incident: Incident, setup: Setup | None, sample: Health | None, went_on: Sequence[Event]
) -> tuple[Evidence, ...]:
    texts = [first_line(incident), _whole_columns(incident, setup)]
    if incident.input["rows"] and incident.origin not in ("input", "target", "constant"):
        texts.append(f"of that batch, {of_data(incident)}; the other rows hold less than a millionth of it")
    if incident.place:
        texts.append(where(incident))
    half = incident.half or (setup.half if setup is not None else "")
    if half:
        texts.append(f"it computes in {half}, which holds up to {'65,504' if half == 'float16' else '3.4e38'}")
    if _divides_by_zero(incident, setup) and setup is not None:
        texts.append(f"the epsilon of {setup.optimizer_class} is 0: where a gradient was always 0, its update is 0 / 0")
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


def _whole_columns(incident: Incident, setup: Setup | None) -> str:
    """All rows of the batch: nothing is left where they are left out."""
    shapes = [one.shape() for one in setup.inputs if one.text("name") == incident.input.text("name")] if setup else []
    rows, columns = incident.input.number("row_count") or 0, list(incident.input["columns"] or ())
    if incident.origin != "input" or len(shapes) != 1 or len(shapes[0]) != 2 or not 4 <= shapes[0][0] <= rows:
        return ""
    return f"{WHOLE} {', '.join(map(str, columns))}" if 0 < len(columns) < shapes[0][1] else ""


def _largest_gradient(sample: Health) -> list[str]:
    known = [group for group in sample.groups if group.gradient is not None and math.isfinite(group.gradient)]
    if len(known) < 2:
        return []
    largest = max(known, key=lambda group: group.gradient or 0.0)
    return [f"the largest gradient at step {sample.step}: of {largest.name} (norm {figure(largest.gradient)})"]


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
        jumped = f", a jump to {rate / was:.0f} times that" if was and rate >= Thresholds().jump * was else ""
        changed = f" (it was {was:.3g} before{jumped})" if was and not math.isclose(was, rate) else ""
        moved = f"; one update moves the weights by {ratio:.1%}" if ratio is not None else ""
        schedule = setup.optimizer.text("schedule") if setup is not None else ""
        of = f" of the schedule {schedule}" if schedule else ""
        texts.append(f"the learning rate: {figure(rate)}{changed}{of}{moved}")
    fed = finite(incident.before["largest_input"]) or (setup.input_scale if setup is not None else 0.0)
    if fed >= Thresholds().at_usual_rates:
        texts.append(f"the input reaches {figure(fed)}")
    if setup is not None and setup.target_scale >= 1e3:
        texts.append(
            f"the targets reach {figure(setup.targets.number('max'))} (mean {figure(setup.targets.number('mean'))})"
        )
    return texts


def _details(incident: Incident, setup: Setup | None) -> dict[str, Any]:
    rate, was = _rate(incident, setup), finite(incident.before["rate_was"])
    jumped = was is not None and rate >= Thresholds().jump * was > 0
    return rate_details(setup, lower=was if jumped else smaller_rate(setup, rate))
