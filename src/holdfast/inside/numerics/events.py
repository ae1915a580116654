"""The facts about a run's numbers that are told, and their fields. What they mean is for the detectors to say.

Every field may be missing. Numbers are plain (`plain_numbers.told`).
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict, Union

from ..telemetry import Recorder

SETUP = "numerics.setup"
HEALTH = "numerics.health"
EPOCH = "numerics.epoch"
HELD_OUT = "numerics.held_out"
NON_FINITE = "numerics.non_finite"
WENT_ON = "numerics.went_on"
GAVE_UP = "numerics.gave_up"

# Where something non-finite was seen, and where it came from.
LOSS, GRADIENT, WEIGHTS, METRIC, SLOT, OUTPUT = "loss", "gradient", "weights", "metric", "slot", "output"
STATISTICS = "statistics"  # of a normalisation
INPUT, TARGET, FORWARD, BACKWARD, UPDATE, UNKNOWN = "input", "target", "forward", "backward", "update", "unknown"
CONSTANT = "constant"  # of the script's: weights of classes, a table
# How a run went on.
BATCH_SKIPPED, ROWS_LEFT_OUT, ROLLED_BACK = "batch-skipped", "rows-left-out", "rolled-back"
CLIPPED, RATE_LOWERED, LOSS_SCALE_LOWERED = "clipped", "rate-lowered", "loss-scale-lowered"
IMPUTED = "values-imputed"
NOT_FINITE = "not finite"

GROUPS = 24  # layers of a health sample: the first and last twelve
ROWS = 10  # bad rows and columns that are named
CLASSES = 64  # that are counted in what is trained on and what is held out
DISTINCT = 65  # values of targets that are counted

Number = Union[float, int, str, None]


class Columns(TypedDict, total=False):
    count: int
    largest_scale: Number  # scale: the largest absolute value in a column
    largest_at: int
    smallest_scale: Number
    constant: int  # how many columns have one value only


class Values(TypedDict, total=False):
    """Of a tensor. `between_0_and_1` and `…_sum_to_1` of outputs; `distinct`, `one_hot`, `several` and `repeated` of targets; `columns` of
    two-dimensional float input."""

    name: str
    shape: List[int]
    dtype: str
    min: Number
    max: Number
    mean: Number
    std: Number
    non_finite: int
    integers: bool
    distinct: int
    one_hot: bool
    several: bool  # zeros and ones, and rows with more than one of them
    repeated: bool  # each row has one value, in all its columns
    between_0_and_1: bool
    rows_sum_to_1: bool
    columns_sum_to_1: bool  # and rows do not
    columns: Columns


class LastLayer(TypedDict, total=False):
    layer: str
    kind: str
    units: int
    activation: Optional[str]  # softmax sigmoid tanh relu linear …; None where it is not known


class Loss(TypedDict, total=False):
    name: str
    family: Optional[str]  # binary categorical sparse nll regression hinge divergence kl ctc; None of an own function
    from_logits: Optional[bool]
    over_rows: bool  # a softmax on the way to it runs over the rows of the batch
    compared: List[int]  # the shape of outputs minus targets, where the script takes the difference itself
    line: Optional[str]
    classes: int  # that the loss chooses among, where its target is their numbers
    vector: bool  # it is given one vector of scores, and no table of rows


class Optimizer(TypedDict, total=False):
    name: str
    rate: Number
    schedule: str  # the class of the object that gives the rate
    weight_decay: Number
    epsilon: Number  # what is added to the root that an update is divided by
    momentum: Number
    clips: Optional[bool]
    parameters: int
    not_given: List[str]


class Weights(TypedDict, total=False):
    trainable: int
    frozen: int
    frozen_names: List[str]
    zero: List[str]
    constant: List[str]
    largest: Dict[str, Any]  # name, std, shape


class Head(TypedDict, total=False):
    """An output with a loss of its own, where a model has several, or another term of the loss."""

    name: str
    last: LastLayer
    loss: Loss
    targets: Values
    output: Values


class Setup(TypedDict, total=False):
    step: int
    model: str
    last: LastLayer
    loss: Loss
    targets: Values
    output: Values
    inputs: List[Values]
    first_layer: Dict[str, str]
    optimizer: Optimizer
    weights: Weights
    recurrent: bool
    normalised: bool
    half: Optional[str]
    overflow: str  # an operation that was given Inf in float16, while the loss is finite
    # Dense layers that follow each other with nothing but shapes between, where the model has no other:
    linear: List[str]
    normalised_alone: List[str]  # batch normalisations that are given one value of each feature
    heads: List[Head]


class Health(TypedDict, total=False):
    step: int
    epoch: int
    loss: Number
    rate: Number
    groups: List[List[Any]]  # name, weight_norm, gradient_norm, update_norm, zero_share, numbers
    units: List[List[Any]]  # layer, activation, dead_share, saturated_share
    classes: List[Any]  # distinct labels, share of the most common, rows, which it is
    correct: Number
    spread: Number
    scale: Number
    # Weights that the loss depends on, that no optimizer was seen to have, and that are as they were at the start:
    left_out: List[str]
    never_trained: bool  # all of those hold what layers begin with, to the last number
    unregistered: List[str]  # in a plain list or dict, so that the model does not know them as its parameters
    # Of the gradient at the update, how much was there before the first backward pass since the last one (norms): 0 where it is cleared.
    carried: Number


class BadInput(TypedDict, total=False):
    name: str
    rows: List[int]
    row_count: int
    columns: List[int]
    what: str  # NaN Inf -Inf
    indices: List[int]
    source_clean: Optional[bool]


class Place(TypedDict, total=False):
    layer: Optional[str]
    op: Optional[str]
    line: Optional[str]
    code: Optional[str]
    dtype: Optional[str]


class Before(TypedDict, total=False):
    losses: List[List[Number]]
    gradient_norms: List[List[Number]]
    largest_weight: Number
    weights_finite: bool
    rate: Number
    rate_was: Number
    loss_scale: Number
    update_ratio: Number
    output_scale: Number
    largest_input: Number  # of what is finite in the batch


class NonFinite(TypedDict, total=False):
    step: int
    seen_at: int
    seen_in: str
    origin: str
    reproduced: Optional[bool]
    replay: str
    input: BadInput
    at: Place
    values: Optional[str]
    before: Before
    half: Optional[str]
    skipped_by_scaler: bool
    had_numbers: bool  # a metric that was finite before


def tell_setup(recorder: Recorder, facts: Setup) -> None:
    recorder.event(SETUP, **facts)


def tell_health(recorder: Recorder, facts: Health) -> None:
    recorder.event(HEALTH, **facts)


def tell_epoch(recorder: Recorder, epoch: int, step: int, logs: Dict[str, Number]) -> None:
    recorder.event(EPOCH, epoch=epoch, step=step, logs=logs)


def tell_held_out(recorder: Recorder, step: int, counts: List[List[int]]) -> None:
    """`counts`: of each class its number, how often it is trained on, and how often it is held out."""
    recorder.event(HELD_OUT, step=step, counts=counts)


def tell_non_finite(recorder: Recorder, facts: NonFinite) -> None:
    """`at` goes as `place`: an event has a time by that name."""
    told: Dict[str, Any] = dict(facts)
    if "at" in told:
        told["place"] = told.pop("at")
    recorder.event(NON_FINITE, **told)


def tell_went_on(
    recorder: Recorder, step: int, how: str, text: str, lost_steps: int, times: int, was: str = NOT_FINITE
) -> None:
    """`was`: what was wrong with the step."""
    recorder.event(WENT_ON, step=step, how=how, text=text, lost_steps=lost_steps, times=times, was=was)


def tell_gave_up(recorder: Recorder, step: int, times: int, text: str) -> None:
    recorder.event(GAVE_UP, step=step, times=times, text=text)


def ends(items: List[Any], at_most: int = GROUPS) -> List[Any]:
    """The first and last of a list that is too long to be told."""
    half = at_most // 2
    return items if len(items) <= at_most else [*items[:half], *items[-half:]]
