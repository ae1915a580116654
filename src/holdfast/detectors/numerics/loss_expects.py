"""What a loss function is made for: logits, probabilities, logarithms of them, one class of many or several."""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.detectors.numerics.facts import Setup, figure

SLACK = 1e-3  # beyond 0 and 1: rounding
# By the family of the loss: its name in Keras and in PyTorch, from logits, and the activation that makes probabilities.
FORMS = {
    "binary": ("BinaryCrossentropy", "binary_cross_entropy_with_logits", "sigmoid"),
    "categorical": ("CategoricalCrossentropy", "cross_entropy", "softmax"),
    "sparse": ("SparseCategoricalCrossentropy", "cross_entropy", "softmax"),
    "divergence": ("KLDivergence", "kl_div", "softmax"),
}
# Losses of PyTorch that take logarithms of probabilities.
OF_LOGARITHMS = {"nll": "logits for logarithms", "kl": "logits for a divergence", "ctc": "logits for alignments"}


class Mismatch(NamedTuple):
    confidence: float
    kind: str  # a detail of the finding: the remedies go by it
    why: str


def units_of(setup: Setup) -> int:
    shape = setup.output.shape()
    return shape[-1] if len(shape) > 1 else 1


def loss_name(setup: Setup) -> str:
    return setup.loss.text("name") or "here"


def what_the_loss_expects(setup: Setup) -> Mismatch | None:
    return _logits(setup) or _logarithms(setup) or _divergence(setup) or _probabilities(setup)


def _logits(setup: Setup) -> Mismatch | None:
    """Probabilities into a loss that makes probabilities of what it is given."""
    activation, made = setup.last.text("activation"), setup.loss["from_logits"]
    if not made or setup.family not in ("binary", "categorical", "sparse"):
        return None
    if activation in ("softmax", "sigmoid"):
        return Mismatch(
            0.9,
            "probabilities for logits",
            f"the last layer ends in {activation}, and the loss {loss_name(setup)} applies it once more (it expects logits)",
        )
    several = units_of(setup) > 1
    if setup.output["rows_sum_to_1"] and setup.output["between_0_and_1"] and several:
        return Mismatch(
            0.85,
            "probabilities for logits",
            f"the outputs are probabilities (each row sums to 1), and the loss {loss_name(setup)} expects logits",
        )
    return None


def _logarithms(setup: Setup) -> Mismatch | None:
    highest = setup.output.number("max")
    kind = OF_LOGARITHMS.get(setup.family)
    if kind is None or highest is None or highest <= SLACK:
        return None
    if setup.family == "kl" and not setup.last.text("activation"):
        return None  # what went into it was not kept: the model's output, of which a script may take the logarithm
    why = (
        f"the loss {loss_name(setup)} expects logarithms of probabilities (0 or less), and gets up to {figure(highest)}"
    )
    return Mismatch(0.92, kind, why)


def _divergence(setup: Setup) -> Mismatch | None:
    """Of Keras: of what is no share of a whole, it is no distance, and has no lower end."""
    lowest, highest = setup.output.number("min"), setup.output.number("max")
    if setup.family != "divergence" or lowest is None or highest is None or units_of(setup) < 2:
        return None
    activation = setup.last.text("activation")
    if lowest >= -SLACK and highest <= 1 + SLACK and activation not in ("relu", "tanh", "linear"):
        return None
    ends = f"the last layer ends in {activation}" if activation else "the outputs are none"
    why = f"the loss {loss_name(setup)} expects probabilities, and {ends}: its outputs go from {figure(lowest)} to {figure(highest)}"
    return Mismatch(0.9, "logits for a divergence", why)


def _probabilities(setup: Setup) -> Mismatch | None:
    """Anything else into a loss that takes probabilities: it is cut off at 0 and 1, and has no gradient there."""
    lowest, highest = setup.output.number("min"), setup.output.number("max")
    if lowest is None or highest is None:
        return None
    if setup.loss["from_logits"] is not False or not setup.classifies:
        return None
    activation = setup.last.text("activation")
    outside = lowest < -SLACK or highest > 1 + SLACK
    if outside or activation in ("relu", "tanh", "linear"):
        ends = f"the last layer ends in {activation}" if activation else "the outputs are no probabilities"
        return Mismatch(
            0.92,
            "logits for probabilities",
            (
                f"the loss {loss_name(setup)} expects probabilities, and {ends}: its outputs go from {figure(lowest)} to {figure(highest)}"
            ),
        )
    return None


def one_of_many(setup: Setup) -> Mismatch | None:
    """It trains, and less well: each class is a question of its own, and a share that is right by saying 0 is told as accuracy."""
    if setup.family != "binary" or setup.last.text("activation") != "softmax" or units_of(setup) < 3:
        return None
    if not setup.targets["one_hot"]:
        return None
    return Mismatch(
        0.75,
        "one of many",
        (
            f"softmax chooses one of {units_of(setup)} classes, and the loss {loss_name(setup)} takes each of them as a yes or no of its own"
        ),
    )


def several_of_many(setup: Setup) -> Mismatch | None:
    """Only of Keras's own loss for one class of many: a product with logarithms that a script takes itself may be a likelihood of
    counts (what a person bought), or of pairs."""
    keras = setup.loss["from_logits"] is not None and setup.loss.text("name") != "cross_entropy"
    if setup.family != "categorical" or not keras or not setup.targets["several"]:
        return None
    if setup.output.shape() != setup.targets.shape() or setup.inputs_are_targets:
        return None
    why = (
        f"rows have several classes at once, and the loss {loss_name(setup)} is made for one of {units_of(setup)}: the classes of a row "
        "take probability from each other"
    )
    return Mismatch(0.8, "several of many", why)


def never_below_half(setup: Setup) -> Mismatch | None:
    """A yes or no by a score that cannot be negative."""
    lowest, fewest = setup.output.number("min"), setup.targets.number("min")
    if setup.family != "binary" or not setup.loss["from_logits"] or setup.last.text("activation") != "relu":
        return None
    if lowest is None or lowest < 0 or fewest != 0 or setup.targets.number("max") != 1:
        return None
    why = "the last layer ends in relu, so no score is negative, and no probability is below one half: the answer is never no"
    return Mismatch(0.85, "rectified logits", why)


def within_one(setup: Setup) -> Mismatch | None:
    """Scores that a script makes larger afterwards end in that product, and not in tanh."""
    lowest, highest = setup.output.number("min"), setup.output.number("max")
    if not setup.loss["from_logits"] or setup.last.text("activation") != "tanh" or lowest is None or highest is None:
        return None
    if setup.family not in ("binary", "categorical", "sparse") or lowest < -1 - SLACK or highest > 1 + SLACK:
        return None
    least = (
        math.log(1 + math.exp(-1)) if setup.family == "binary" else math.log(1 + (units_of(setup) - 1) * math.exp(-2))
    )
    why = f"the last layer ends in tanh, so scores lie between -1 and 1, and the loss {loss_name(setup)} cannot fall below {figure(least)}"
    return Mismatch(0.8, "rectified logits", why)
