"""Models whose weights, gradients and optimizer are a large part of the memory, in containers that leave no room for waste.

The container is what the bare script takes at an eighth of its batch, one copy of the gradients, 64 MiB, and what
Holdfast's own processes take (48 MiB): they are in the container, too, since a limit around the training process alone
would take it out of the groups that Holdfast watches. The bare peaks are the most that the container's group used before
the result was written. Holdfast's own cost is the highest resident memory of the training process in k pieces, less that
of the bare script at batch/k.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.oom.runs import PLENTY, Run, begun_with, run
from lab.oom.table import Row

HEADINGS = (
    "model", "weights", "gradients", "optimizer", "bare whole / eighth", "container", "exit", "restarts", "how", "k",
    "apart", "own cost", "seconds",
)  # fmt: skip
SCRIPT = Path(__file__).with_name("train_state.py")
PARTS = 8
SPARE_BYTES = 64 << 20
HOLDFAST_BYTES = 48 << 20
PATIENCE_S = 600.0
MIB = 1 << 20
LAST_LINES = 12
_GREETING = re.compile(r"before absl::InitializeLog|oneDNN custom operations are on|cpu_feature_guard")  # TensorFlow's
_NUMBERS = itertools.count(1)


class Model(NamedTuple):
    name: str
    optimizer: str
    within: float  # the distance of the weights from the uncapped run's


FLOAT32, FLOAT64 = 1e-4, 1e-6
MODELS = (
    Model("dense-80", "SGD, momentum", FLOAT32),
    Model("dense-130", "SGD, momentum", FLOAT32),
    Model("dense-adam", "Adam, float64", FLOAT64),
    Model("embedding-adam", "Adam, float64", FLOAT64),
    Model("embedding-sgd", "SGD, momentum", FLOAT32),
    Model("transformer-adamw", "AdamW, clipped, float64", FLOAT64),
    Model("gru", "SGD, momentum", FLOAT32),
    Model("cnn", "SGD, momentum", FLOAT32),
    Model("wide-frozen", "SGD, momentum", FLOAT32),
)


def rows(only: list[str]) -> Iterator[Row]:
    for model in MODELS:
        if not only or model.name in only:
            with tempfile.TemporaryDirectory() as folder:
                yield _row(model, Path(folder))


def _row(model: Model, place: Path) -> Row:
    whole = _train(model, place)
    eighth = _train(model, place, parts=PARTS, gradients=True)
    if whole.exit or eighth.exit:
        return Row(False, (model.name, *[""] * (len(HEADINGS) - 2), "bare run failed"), _last_lines(whole, eighth))
    sizes = {**_told(whole), "gradients": _told(eighth)["gradients"], "eighth": _told(eighth)["peak"]}
    container = sizes["eighth"] + sizes["gradients"] + SPARE_BYTES + HOLDFAST_BYTES
    held = _train(model, place, container=container, options=())
    distance = _apart(whole, held)
    good = held.exit == 0 and held.restarts <= 1 and isinstance(distance, float) and distance <= model.within
    cells = (
        model.name, f"{sizes['weights'] // 10**6} MB", f"{sizes['gradients'] // 10**6} MB", model.optimizer,
        f"{sizes['peak'] // MIB} / {sizes['eighth'] // MIB} MiB", f"{container // MIB} MiB", str(held.exit),
        str(held.restarts), held.how, str(_pieces(held)), distance if isinstance(distance, str) else f"{distance:.1e}",
        _own_cost(model, place, held, eighth), f"{_told(held).get('seconds', 0):.0f} (whole {sizes['seconds']:.0f})",
    )  # fmt: skip
    return Row(good, cells, "" if good else _last_lines(held))


def _train(
    model: Model, place: Path, *, parts: int = 1, gradients: bool = False, container: int = PLENTY,
    options: tuple[str, ...] | None = None,
) -> Run:  # fmt: skip
    result = place / f"result-{next(_NUMBERS)}"
    more = {"LAB_GRADIENTS": "1"} if gradients else {}
    words = [str(SCRIPT), model.name, str(result), str(parts)]
    return run(words, result, container=container, options=options, more=more, patience=PATIENCE_S)


def _told(trained: Run) -> dict[str, Any]:
    """What the script printed, all lines together."""
    lines = [json.loads(line[4:]) for line in trained.output.splitlines() if line.startswith("LAB ")]
    return {name: value for line in lines for name, value in line.items()}


def _pieces(trained: Run) -> int:
    decisions = [str(data.get("text")) for kind, data in trained.events if kind == "decision"]
    return max(trained.k, begun_with(decisions))


def _own_cost(model: Model, place: Path, held: Run, eighth: Run) -> str:
    """By the process's own highest mark: that of a group counts the page cache of checkpoints, which costs nobody."""
    k = _pieces(held)
    if held.exit or k == 1:
        return "-"
    piece = eighth if k == PARTS else _train(model, place, parts=k)
    if "resident" not in _told(piece):
        return "not measured"
    return f"{(_told(held)['resident'] - _told(piece)['resident']) / MIB:+.0f} MiB"


def _apart(whole: Run, held: Run) -> float | str:
    """Weight by weight: all of them at once would be several copies."""
    if held.exit or not held.result.is_dir():
        return "-"
    if _told(whole)["iterations"] != _told(held)["iterations"]:
        return "steps!"
    off = size = 0.0
    for path in sorted(whole.result.iterdir()):
        mine, other = np.load(path).astype("float64"), np.load(held.result / path.name).astype("float64")
        off += float(np.square(mine - other).sum())
        size += float(np.square(mine).sum())
    return float(np.sqrt(off / size))


def _last_lines(*trained: Run) -> str:
    failed = [one for one in trained if one.exit] or list(trained)
    return "\n".join(_last_of(one) for one in failed)


def _last_of(trained: Run) -> str:
    lines = [line.rstrip() for line in trained.errors.splitlines() if line.strip() and not _GREETING.search(line)]
    refused = {str(data.get("reason")) for kind, data in trained.events if kind == "rescue.refused"}
    said = [f"refused: {reason}" for reason in sorted(refused)]
    verdict = [f"why: {trained.outcome}, {trained.cause}"] if trained.outcome else []
    return "\n".join(f"    {line[:200]}" for line in [*lines[-LAST_LINES:], *said, *verdict])
