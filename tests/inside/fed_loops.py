"""Loops whose loaders hand out labels that do not fit, and healthy ones that only look so, all in one process:
`python -m tests.inside.fed_loops POLICY`. Prints one line of JSON: by loop, how it ended and what was told."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from holdfast.inside import never_raise
from holdfast.inside.telemetry import Recorder
from holdfast.inside.torch import step
from holdfast.inside.torch.compile_phase import Compiling
from holdfast.inside.torch.fed_batches import looking_at_batches
from holdfast.inside.torch.numerics.hooks import aspect_of, looking
from holdfast.inside.torch.telemetry import Telemetry
from holdfast.inside.torch.usual_step import UsualStep
from holdfast.inside.torch.wrapped_calls import telling
from tests.inside.recorded import Events

ROWS, BATCH, CLASSES, SLIP = 480, 24, 5, 300
Change = Callable[[Any], Any]


def data() -> tuple[Any, Any]:
    torch.manual_seed(3)
    x = torch.randn(ROWS, 6)
    return x, x[:, :CLASSES].argmax(1)


def train(
    loader: Any, remapped: Change = lambda y: y, epochs: int = 3, fresh: Callable[[], Any] | None = None,
    given: Change = lambda x: x,
) -> str:  # fmt: skip
    """The hash of the weights it ends with."""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(epochs):
        for batch in loader if fresh is None else fresh():
            x, y = (batch["x"], batch["label"]) if isinstance(batch, dict) else batch
            optimizer.zero_grad()
            F.cross_entropy(model(given(x).float().reshape(len(y), -1)), remapped(y), ignore_index=-7).backward()
            optimizer.step()
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()


def healthy() -> str:
    return train(DataLoader(TensorDataset(*data()), BATCH, shuffle=True))


def one_slip() -> str:
    x, y = data()
    y[SLIP] = 9
    return train(DataLoader(TensorDataset(x, y), BATCH, shuffle=True))


def loader_of_each_epoch() -> str:
    x, y = data()
    y[SLIP] = 9
    rows = TensorDataset(x, y)
    return train(None, fresh=lambda: DataLoader(rows, BATCH))


def data_of_each_epoch() -> str:
    x, y = data()
    y[SLIP] = 9
    return train(None, fresh=lambda: DataLoader(TensorDataset(x, y), BATCH))


def classes_that_come_later() -> str:
    """Each stage has data of its own, as many rows as before, and a last layer with more outputs."""
    x, y = data()
    torch.manual_seed(4)
    body, heads = nn.Linear(6, 16), [nn.Linear(16, outputs) for outputs in (2, CLASSES)]
    model = nn.Sequential(body, nn.ReLU(), heads[0])
    for head in heads:
        model[2] = head
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for rows, labels in DataLoader(TensorDataset(x, y % head.out_features), BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(rows), labels).backward()
            optimizer.step()
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()


def two_data_sets() -> str:
    """The second one comes when model and loss are known."""
    sets = []
    for _ in range(2):
        x, y = data()
        sets.append((x.clone(), y.clone()))
    sets[1][1][SLIP] = 9
    loaders = [DataLoader(TensorDataset(*each), BATCH) for each in sets]
    return train(None, fresh=lambda: itertools.chain(*loaders))


class ByName(Dataset[Any]):
    def __init__(self) -> None:
        self.x, self.label = data()
        self.label[SLIP] = -3

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        return {"x": self.x[index], "label": self.label[index], "text": f"row {index}"}


def by_name() -> str:
    return train(DataLoader(ByName(), BATCH))


def many() -> str:
    x, y = data()
    y[100::8] = 11
    return train(DataLoader(TensorDataset(x, y), BATCH))


def a_class_too_few() -> str:
    x, y = data()
    y[torch.arange(100, ROWS, 90)] = CLASSES
    return train(DataLoader(TensorDataset(x, y), BATCH))


def ignored() -> str:
    x, y = data()
    y[60::9] = -7
    return train(DataLoader(TensorDataset(x, y), BATCH))


def remapped() -> str:
    x, y = data()
    y[SLIP] = 255
    return train(DataLoader(TensorDataset(x, y), BATCH), lambda y: torch.where(y == 255, -7, y))


def remapped_in_place() -> str:
    x, y = data()
    y[SLIP] = 255

    def change(labels: Any) -> Any:
        labels[labels == 255] = -7
        return labels

    return train(DataLoader(TensorDataset(x, y), BATCH), change)


class TwoTypes(Dataset[Any]):
    """The last rows were read from another file."""

    def __init__(self, axes: bool) -> None:
        self.x, self.y = data()
        self.axes = axes

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        x = self.x[index]
        if index >= ROWS - BATCH:
            x = x.reshape(1, -1) if self.axes else x.double()
        return x, self.y[index]


def another_type() -> str:
    return train(DataLoader(TwoTypes(axes=False), BATCH))


def another_axis() -> str:
    return train(DataLoader(TwoTypes(axes=True), BATCH))


def missing_in_every_batch() -> str:
    """A quarter of the values of one column, and all of another."""
    x, y = data()
    x[::4, 2] = math.nan
    x[:, 5] = math.inf
    loader = DataLoader(TensorDataset(x, y), BATCH)
    weights = train(loader)
    assert not x[:, 5].isfinite().any()  # the script's own data is as it was
    return weights


def filled_by_the_script() -> str:
    x, y = data()
    x[::4, 2] = math.nan
    return train(DataLoader(TensorDataset(x, y), BATCH), given=torch.nan_to_num)


LOOPS = (
    missing_in_every_batch, filled_by_the_script,
    healthy, one_slip, loader_of_each_epoch, data_of_each_epoch, two_data_sets, classes_that_come_later, by_name, many, a_class_too_few, ignored, remapped, remapped_in_place, another_type,
    another_axis,
)  # fmt: skip
BARE = (healthy, classes_that_come_later, ignored, remapped, remapped_in_place, filled_by_the_script)


def main(policy: str) -> None:
    bare = {loop.__name__: loop() for loop in BARE}
    events = Events()
    never_raise.on_failure(lambda place, reason: events.text("inside.failed", 0, place=place, reason=reason))
    recorder = Recorder(events, {"policy": policy})  # type: ignore[arg-type]
    telemetry = Telemetry(recorder, torch, Compiling(recorder))
    looks = looking(recorder, torch, telemetry, False)
    fed = looking_at_batches(recorder, torch, looks)
    step.take_over(
        torch,
        [telling(telemetry), aspect_of(looks, torch), fed.aspect],
        lambda: UsualStep(torch, telemetry, None, None, None, looks, fed),
    )
    found = {}
    for loop in LOOPS:
        del events.told[:]
        recorder.steps = 0
        looks.__init__(recorder, torch, telemetry)  # type: ignore[misc]
        fed.listen()
        weights, ended = "", None
        try:
            weights = loop()
        except (IndexError, RuntimeError) as error:
            ended = str(error)
        same = weights == bare[loop.__name__] if loop.__name__ in bare else None
        told = [(kind, data) for kind, data in events.told if kind.startswith(("data.", "numerics.", "inside."))]
        found[loop.__name__] = {"ended": ended, "same": same, "told": told}
    print(json.dumps(found, default=str))


if __name__ == "__main__":
    main(sys.argv[1])
