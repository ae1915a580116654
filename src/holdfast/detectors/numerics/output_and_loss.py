"""Last layer, loss function and labels that do not fit each other: by what each of them is, and what the first batch holds."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors.numerics.facts import READS, Course, Setup, figure, read
from holdfast.detectors.numerics.loss_expects import (
    FORMS,
    Mismatch,
    loss_name,
    never_below_half,
    one_of_many,
    several_of_many,
    units_of,
    what_the_loss_expects,
    within_one,
)
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

SPREAD = "spread shapes"
BOUNDED = {"sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "tanh": (-1.0, 1.0), "hard_sigmoid": (0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class Thresholds:
    beyond: float = 1.5  # times: a target that the last layer cannot reach
    steps: int = 60


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    setup = course.setup
    if setup is None:
        return None
    if not setup.output:
        spread = _shapes(setup)  # which the difference itself tells
        return _finding(spread, setup) if spread is not None else None
    found = _by_form(setup, thresholds) or _by_effect(course, setup, thresholds)
    if found is not None:
        return _finding(found, setup)
    for name, head in setup.each_head():
        of_one = _by_form(head, thresholds)
        if of_one is not None:
            return _finding(of_one._replace(why=f"of {name}: {of_one.why}"), head)
    return None


def _by_form(setup: Setup, thresholds: Thresholds) -> Mismatch | None:
    return (
        _one_unit(setup)
        or _over_rows(setup)
        or what_the_loss_expects(setup)
        or _shapes(setup)
        or _labels(setup)
        or one_of_many(setup)
        or several_of_many(setup)
        or never_below_half(setup)
        or within_one(setup)
        or _range(setup, thresholds)
    )


def _by_effect(course: Course, setup: Setup, thresholds: Thresholds) -> Mismatch | None:
    return (
        _rectified_logits(course, setup, thresholds)
        or _class_for_each_unit(setup)
        or _classes_by_regression(course, setup, thresholds)
    )


def _finding(found: Mismatch, setup: Setup) -> Finding:
    evidence = [
        Evidence(found.why, "telemetry", setup.at),
        Evidence(_as_built(setup, found.kind), "telemetry", setup.at),
    ]
    return Finding(
        "output-loss-mismatch",
        found.confidence,
        tuple(evidence),
        {"mismatch": found.kind, found.kind: True, **_form(setup)},
        headline=f"Last layer and loss do not fit: {found.why}",
    )


def _form(setup: Setup) -> dict[str, str | int]:
    forms = FORMS.get(setup.family)
    names = dict(zip(("keras_loss", "torch_loss", "activation"), forms, strict=True)) if forms else {}
    return {"units": units_of(setup), **names}


def _one_unit(setup: Setup) -> Mismatch | None:
    if setup.last.text("activation") == "softmax" and units_of(setup) == 1:
        return Mismatch(
            0.97, "softmax over one unit", "softmax over one unit gives 1.0 for every row, whatever the weights are"
        )
    rows = setup.targets.shape()[0] if setup.targets.shape() else 0
    if setup.loss["vector"] and setup.last["units"] == 1 and rows > 1:
        why = (
            f"the loss {loss_name(setup)} is given the {rows} outputs of the batch as one vector, and takes them for the {rows} classes of "
            "one row"
        )
        return Mismatch(0.92, "softmax over one unit", why)
    if setup.family == "categorical" and not setup.loss["from_logits"] and _is_one_column(setup):
        why = f"the loss {loss_name(setup)} makes one unit's share of the whole, which is 1.0 for every row: it is 0 whatever the weights are"
        return Mismatch(0.95, "softmax over one unit", why)
    if setup.loss["from_logits"] and setup.family in ("categorical", "sparse") and _is_one_column(setup):
        return Mismatch(
            0.95,
            "softmax over one unit",
            f"the loss {loss_name(setup)} takes a softmax over one unit: that is 1.0 for every row, whatever the weights are",
        )
    return None


def _is_one_column(setup: Setup) -> bool:
    shape = setup.output.shape()
    return len(shape) == 2 and shape[1] == 1


def _over_rows(setup: Setup) -> Mismatch | None:
    axis = "dim" if setup.loss["over_rows"] else "axis" if setup.output["columns_sum_to_1"] else ""
    if not axis or not setup.classifies:
        return None
    why = f"softmax runs over the rows of the batch ({axis}=0) instead of over the classes ({axis}=1)"
    return Mismatch(0.92, "softmax over rows", why)


def _shapes(setup: Setup) -> Mismatch | None:
    """Sizes that do not match are spread over each other, without an error."""
    if setup.family != "regression":
        return None
    output, targets = setup.output.shape(), setup.targets.shape()
    rows = setup.inputs[0].shape()[:1] if setup.inputs else ()
    if output == targets and rows and output == rows * 2 and rows[0] > 1 and setup.last["units"] == 1:
        return Mismatch(
            0.92,
            SPREAD,
            (
                f"{rows[0]} outputs and {rows[0]} targets became {output[0]} x {output[1]}: their shapes differ by an axis of one, and "
                "every output is compared with every target"
            ),
        )
    compared = tuple(int(size) for size in setup.loss["compared"] or ())
    count = _numbers(setup, output, rows)
    if count > 1 and compared == (count, count):
        of = f"of shape {output}" if output else f"({count}, one a row)"
        return Mismatch(
            0.92,
            SPREAD,
            (
                f"outputs {of} minus the targets give {compared}: their shapes differ by an axis of one, and every output is "
                "compared with every target"
            ),
        )
    if not output or not targets or output == targets or 1 in (output[0], targets[0]):
        return None
    brings_together = not setup.loss.text("name").endswith("_loss")  # Keras does so with (n,) and (n, 1)
    if brings_together and (len(output) != len(targets) or output[-1] == targets[-1]):
        return None
    return Mismatch(
        0.92,
        SPREAD,
        (
            f"outputs of shape {setup.output.shape()} and targets of shape {setup.targets.shape()} are spread over each other: "
            "every output is compared with every target"
        ),
    )


def _numbers(setup: Setup, output: tuple[int, ...], rows: tuple[int, ...]) -> int:
    """How many the model gives, where that is one a row; features of rows are something else."""
    if not output:
        return rows[0] if rows and setup.last["units"] == 1 else 0
    return output[0] if output in (output[:1], (*output[:1], 1)) else 0


def _labels(setup: Setup) -> Mismatch | None:
    lowest, highest = setup.targets.number("min"), setup.targets.number("max")
    if lowest is None or highest is None or setup.family != "binary":
        return None
    if lowest < 0 or highest > 1:
        whole = setup.targets["integers"] is not False
        return Mismatch(
            0.9,
            "label range" if whole else "quantities as shares",
            f"the loss {loss_name(setup)} expects labels from 0 to 1, and the first batch has {figure(lowest)} to {figure(highest)}",
        )
    return None


def _range(setup: Setup, thresholds: Thresholds) -> Mismatch | None:
    """A number is to be predicted that the last layer cannot give."""
    activation = setup.last.text("activation")
    lowest, highest = setup.targets.number("min"), setup.targets.number("max")
    if setup.family != "regression" or lowest is None or highest is None:
        return None
    if activation in BOUNDED:
        low, high = BOUNDED[activation]
        if highest > thresholds.beyond * high or lowest < low - (thresholds.beyond - 1.0):
            return Mismatch(
                0.88,
                "output range",
                f"{activation} gives {low:g} to {high:g}, and the targets go from {figure(lowest)} to {figure(highest)}",
            )
    mean = setup.targets.number("mean")
    if activation == "relu" and lowest < 0 and mean is not None and mean <= 0.1 * highest:
        return Mismatch(
            0.8,
            "output range",
            f"relu gives nothing below 0, and the targets go from {figure(lowest)} to {figure(highest)}",
        )
    return None


def _rectified_logits(course: Course, setup: Setup, thresholds: Thresholds) -> Mismatch | None:
    """Scores that cannot be negative: a class whose score is 0 for every row gets no gradient any more."""
    if setup.last.text("activation") != "relu" or not setup.loss["from_logits"] or not setup.classifies:
        return None
    if course.steps < thresholds.steps:
        return None
    last = setup.last.text("layer")
    looks = [units.dead for sample in course.samples for units in sample.units if units.layer == last]
    dead = looks[-1] if looks else 0.0
    if dead * units_of(setup) >= 0.99:
        effect = f"{dead:.0%} of them are 0 for every row, and get no gradient"
        return Mismatch(
            0.85, "rectified logits", f"the last layer ends in relu, so no score of a class can be negative: {effect}"
        )
    if course.learns() is False:
        return Mismatch(
            0.75,
            "rectified logits",
            "the last layer ends in relu, so no score of a class can be negative; the loss does not fall",
        )
    return None


def _class_for_each_unit(setup: Setup) -> Mismatch | None:
    """A unit for each class, and the number of the class as what all of them are to give."""
    units, targets = units_of(setup), setup.targets
    lowest, highest, distinct = targets.number("min"), targets.number("max"), targets.number("distinct") or 0
    if (
        setup.family != "regression"
        or not (targets["repeated"] and targets["integers"])
        or lowest is None
        or highest is None
    ):
        return None
    if units < 2 or distinct < 2 or lowest < 0 or highest > units or setup.output.shape() != targets.shape():
        return None
    why = f"each of the {units} outputs is compared with the same whole number of its row, {lowest:.0f} to {highest:.0f}: the number of a class"
    return Mismatch(0.85, "classes as quantities", why)


def _classes_by_regression(course: Course, setup: Setup, thresholds: Thresholds) -> Mismatch | None:
    """Class numbers or one-hot rows under a squared error: some learn all the same, and are left alone."""
    if setup.family != "regression" or setup.last.text("activation") not in ("softmax",):
        return None
    if not (setup.targets["one_hot"] or setup.targets["integers"]):
        return None
    learns = course.learns()
    if course.steps < thresholds.steps or learns is None or learns:
        return None
    return Mismatch(
        0.7,
        "classes as quantities",
        f"the labels are classes, and the loss {loss_name(setup)} is made for quantities; the loss does not fall",
    )


def _as_built(setup: Setup, kind: str) -> str:
    layer, layer_kind = setup.last.text("layer"), setup.last.text("kind")
    activation = setup.last.text("activation") or "an unknown activation"
    form = {True: ", from logits", False: ", from probabilities"}.get(setup.loss["from_logits"], "")
    line = f" at {setup.loss.text('line')}" if setup.loss["line"] else ""
    units = setup.last["units"] if kind == SPREAD and setup.last["units"] else units_of(setup)
    # Shapes that were spread over each other are told as they became, which is not what the script has.
    labels = "" if kind == SPREAD else f"; labels: shape {setup.targets.shape()}, {setup.targets.text('dtype')}"
    return (
        f"last layer: {layer or layer_kind or '?'} with {units} {'unit' if units == 1 else 'units'} and {activation}; "
        f"loss: {loss_name(setup)}{form}{line}{labels}"
    )
