"""What the training process tells of its numbers, typed. Whatever it could not tell is None or empty."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

from holdfast.detectors.numerics.samples import Health, finite, number
from holdfast.recorded_events import WentOn
from holdfast.vocabulary import Detail, Event, Window
from holdfast.windows import Reads

SETUP, HEALTH, NON_FINITE, EPOCH = "numerics.setup", "numerics.health", "numerics.non_finite", "numerics.epoch"
READS = Reads(events=(SETUP, HEALTH, NON_FINITE, EPOCH, WentOn.KIND))


class Part(dict[str, Any]):
    """A part of an event: what is not there is None."""

    @classmethod
    def of(cls, data: Mapping[str, Any], name: str) -> Part:
        value = data.get(name)
        return cls(value) if isinstance(value, Mapping) else cls()

    def __missing__(self, key: str) -> None:
        return None

    def number(self, key: str) -> float | None:
        return finite(self[key])

    def text(self, key: str) -> str:
        return str(self[key] or "")

    def shape(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self["shape"] or ())


@dataclass(frozen=True, slots=True)
class Setup:
    """Model, loss, optimizer and first batch, as they were right after the first step."""

    at: float
    step: int
    last: Part
    loss: Part
    targets: Part
    output: Part
    inputs: tuple[Part, ...]
    first_layer: str
    optimizer: Part
    weights: Part
    recurrent: bool
    normalised: bool
    half: str
    linear: tuple[str, ...] = ()
    normalised_alone: tuple[str, ...] = ()
    heads: tuple[Part, ...] = ()
    overflow: str = ""

    @classmethod
    def of(cls, event: Event) -> Setup:
        data = event.data
        part = partial(Part.of, data)
        inputs = tuple(Part(one) for one in data.get("inputs") or () if isinstance(one, Mapping))
        return cls(
            event.at, int(number(data.get("step")) or 0), part("last"), part("loss"), part("targets"), part("output"),
            inputs, part("first_layer").text("kind"), part("optimizer"), part("weights"), bool(data.get("recurrent")),
            bool(data.get("normalised")), str(data.get("half") or ""), tuple(str(name) for name in data.get("linear") or ()),
            tuple(str(name) for name in data.get("normalised_alone") or ()),
            tuple(Part(one) for one in data.get("heads") or () if isinstance(one, Mapping)), str(data.get("overflow") or ""),
        )  # fmt: skip

    def each_head(self) -> Iterator[tuple[str, Setup]]:
        """Of a model with a loss for each output: the name of an output, and the model as if it had no other."""
        for head in self.heads:
            part = partial(Part.of, head)
            yield (
                head.text("name"),
                replace(
                    self, last=part("last"), loss=part("loss"), targets=part("targets"), output=part("output"), heads=()
                ),
            )

    @property
    def family(self) -> str:
        return self.loss.text("family")

    @property
    def classifies(self) -> bool:
        return self.family in ("binary", "categorical", "sparse", "nll")

    @property
    def classes(self) -> int:
        """How many, as far as output and labels tell."""
        shape = self.output.shape()
        units = shape[-1] if len(shape) > 1 else 1
        return max(2, units, int(self.targets.number("distinct") or 0) if self.family != "regression" else 0)

    @property
    def chance_loss(self) -> float:
        """Of a model that knows nothing yet: -log(1/classes)."""
        return math.log(self.classes if self.family != "binary" else 2)

    @property
    def input_scale(self) -> float:
        """The largest absolute value fed, but for what is looked up in a table."""
        if self.first_layer.lower().startswith("embedding"):
            return 0.0
        return max((abs(v) for one in self.inputs for v in (one.number("min"), one.number("max")) if v), default=0.0)

    @property
    def target_scale(self) -> float:
        """Of the quantities to be predicted; 0 of classes."""
        if self.family != "regression":
            return 0.0
        return abs(self.targets.number("mean") or 0.0) + (self.targets.number("std") or 0.0)

    @property
    def inputs_are_targets(self) -> bool:
        """An autoencoder, as far as numbers tell: it is given what it is to give."""
        known = ("shape", "min", "max", "mean", "std")
        return any(all(one[key] == self.targets[key] for key in known) for one in self.inputs)

    @property
    def rate(self) -> float | None:
        return self.optimizer.number("rate")

    @property
    def optimizer_class(self) -> str:
        name = self.optimizer.text("name")
        return name if name.isidentifier() else "Adam"

    @property
    def adaptive(self) -> bool:
        name = self.optimizer.text("name").lower()
        return any(word in name for word in ("adam", "rmsprop", "nadam", "lamb", "lion", "adagrad", "adafactor"))


@dataclass(frozen=True, slots=True)
class Course:
    """A run's set-up and samples; nothing where the process told nothing."""

    setup: Setup | None
    samples: tuple[Health, ...]
    incident: Event | None
    shown: tuple[tuple[int, float], ...]  # the losses of whole epochs, by step

    @property
    def steps(self) -> int:
        return self.samples[-1].step if self.samples else 0

    @property
    def steps_told(self) -> int:
        """By samples or, where those are few, by epochs."""
        return max(self.steps, self.shown[-1][0] if self.shown else 0)

    def losses(self) -> list[float]:
        return [sample.loss for sample in self.samples if sample.loss is not None]

    def improved(self) -> float | None:
        """By which share the loss fell between the first and the last samples; None while that cannot be said."""
        losses = self.losses()
        if len(losses) < 6 or any(not math.isfinite(loss) for loss in losses):
            return None
        third = max(2, len(losses) // 3)
        first, last = median(losses[:third]), median(losses[-third:])
        return (first - last) / abs(first) if first else None

    def noise(self) -> float:
        """How much the loss differs from one batch to the next, as a share of it: what falls by less may be luck."""
        losses = [loss for loss in self.losses()[2:] if math.isfinite(loss)]
        steps = [abs(later - earlier) for earlier, later in pairwise(losses)]
        usual = abs(median(losses)) if losses else 0.0
        return median(steps) / usual if steps and usual else 0.0

    def flat(self, share: float) -> bool:
        """Over the whole run, by epochs where they are told: each of those has many batches."""
        if len(self.shown) >= 3:
            first, last = self.shown[0][1], self.shown[-1][1]
            return bool(first) and abs(first - last) <= share * abs(first)  # an epoch's mean has little noise
        improved = self.improved()
        return improved is not None and abs(improved) <= max(share, 1.5 * self.noise())

    def solved(self) -> bool:
        """There is nothing left to learn."""
        right = [sample.correct for sample in self.samples[-3:] if sample.correct is not None]
        return bool(right) and min(right) > 0.95

    def hopeless(self) -> float | None:
        """How many times as large a squared error is, after many steps, as that of a model which always says 0."""
        losses = [loss for loss in self.losses()[-5:] if math.isfinite(loss)]
        name = self.setup.loss.text("name") if self.setup is not None else ""
        if self.setup is None or len(losses) < 3 or not any(word in name for word in ("mse", "squared")):
            return None
        mean, spread = self.setup.targets.number("mean"), self.setup.targets.number("std")
        if mean is None or spread is None or not (mean or spread):
            return None
        return median(losses) / (mean**2 + spread**2)

    def at_chance(self) -> bool:
        """It classifies, and does so no better than one that knows nothing."""
        losses = [loss for loss in self.losses()[-5:] if math.isfinite(loss)]
        if self.setup is None or not self.setup.classifies or len(losses) < 3:
            return False
        right = [sample.correct for sample in self.samples[-5:] if sample.correct is not None]
        guesses = not right or median(right) <= 1.0 / self.setup.classes + 0.12
        return guesses and median(losses) >= 0.97 * self.setup.chance_loss

    def at_chance_lately(self) -> bool:
        """In each sample of the second half of the steps: in short runs those are few, and the last five reach far back."""
        late = [one for one in self.samples if one.step > self.steps / 2]
        losses = [one.loss for one in late if one.loss is not None and math.isfinite(one.loss)]
        if self.setup is None or not self.setup.classifies or len(losses) < 2 or len(losses) < len(late):
            return False
        guesses = all((one.correct or 0.0) <= 1.0 / self.setup.classes + 0.12 for one in late)
        return guesses and min(losses) >= 0.97 * self.setup.chance_loss

    def knows_nothing(self) -> bool:
        """Its error is that of one that gives the same for every row, where what is to be given tells that much."""
        losses = [loss for loss in self.losses()[-3:] if math.isfinite(loss)]
        if self.setup is None or len(losses) < 3:
            return False
        if self.setup.classifies:
            return median(losses) >= 0.95 * self.setup.chance_loss
        spread, name = self.setup.targets.number("std"), self.setup.loss.text("name")
        return (
            bool(spread)
            and any(word in name for word in ("mse", "squared"))
            and median(losses) >= 0.95 * (spread or 0) ** 2
        )

    def learns(self) -> bool | None:
        """Beyond the noise of its batches, by the loss or by what is predicted right. None: too little is known."""
        improved = self.improved()
        if improved is None:
            return None
        right = [sample.correct for sample in self.samples if sample.correct is not None]
        if len(right) >= 6:
            third = max(2, len(right) // 3)
            if median(right[-third:]) - median(right[:third]) > 0.1:
                return True
        if self.at_chance():
            return False
        if len(self.shown) >= 2 and self.shown[-1][1] < 0.95 * self.shown[0][1]:
            return True
        return improved > max(0.05, self.noise() / 2)


def read(window: Window) -> Course:
    """Of the latest model: a script may train several, one after the other."""
    setups = window.events(SETUP)
    since = setups[-1].at if setups else float("-inf")
    setup = Setup.of(setups[-1]) if setups else None
    samples = tuple(Health.of(event) for event in window.events(HEALTH) if event.at >= since - 1.0)
    incidents = window.events(NON_FINITE)  # whenever: the set-up is told after some steps
    shown = []
    for event in window.events(EPOCH):
        logs = event.data.get("logs")
        loss = finite(logs.get("loss")) if isinstance(logs, Mapping) else None
        if event.at >= since - 1.0 and loss is not None:
            shown.append((int(number(event.data.get("step")) or 0), loss))
    return Course(setup, samples, incidents[0] if incidents else None, tuple(shown))


def figure(value: float | None) -> str:
    """For a person: three digits."""
    if value is None:
        return "?"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def smaller_rate(setup: Setup | None, rate: float) -> float:
    """To try next: a tenth, and no more than what such an optimizer is begun with."""
    usual = 1e-3 if setup is not None and setup.adaptive else 0.1
    return usual if rate / 10 >= 10 * usual else rate / 10


def rate_details(setup: Setup | None, lower: float | None = None, higher: float | None = None) -> dict[str, Any]:
    """For remedies that name another learning rate."""
    details: dict[str, Any] = {Detail.OPTIMIZER: setup.optimizer_class if setup is not None else "Adam"}
    if lower:
        details[Detail.LOWER_RATE] = f"{lower:.1g}"
    if higher:
        details[Detail.HIGHER_RATE] = f"{higher:.1g}"
    return details
