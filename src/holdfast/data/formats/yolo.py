"""Boxes beside images as YOLO keeps them: a line each, `class x y width height`, in shares of the image."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from holdfast.data.formats.contract import Trouble

SLACK = 1e-3  # of the image: rounding in the file


def labels_beside(image: Path) -> Path | None:
    """`labels/…` for `images/…`, or a text file of the same name."""
    parts = list(image.parts)
    places = [image.with_suffix(".txt")]
    if "images" in parts:
        last = len(parts) - 1 - parts[::-1].index("images")
        places.append(Path(*parts[:last], "labels", *parts[last + 1 :]).with_suffix(".txt"))
    return next((place for place in places if place.is_file()), None)


def box_troubles(labels: Path, row: int) -> Iterator[Trouble]:
    outside, damaged = 0, 0
    for line in labels.read_text(errors="replace").splitlines():
        words = line.split()
        if not words:
            continue
        try:
            number, *box = (float(word) for word in words)
        except ValueError:
            damaged += 1
            continue
        if len(box) < 4 or not all(map(math.isfinite, box)) or number != int(number) or number < 0:
            damaged += 1
        elif len(box) == 4:
            outside += _is_outside(*box)
        else:  # an outline of points
            outside += any(not -SLACK <= value <= 1 + SLACK for value in box)
    if damaged:
        yield Trouble("unreadable", "lines that are no box: {count}", (row,), damaged, path=str(labels))
    if outside:
        yield Trouble(
            "range",
            "boxes that are empty or reach outside their image: {count}",
            (row,),
            outside,
            False,
            "box",
            str(labels),
        )


def _is_outside(x: float, y: float, width: float, height: float) -> bool:
    if width <= 0 or height <= 0:
        return True
    return x - width / 2 < -SLACK or y - height / 2 < -SLACK or x + width / 2 > 1 + SLACK or y + height / 2 > 1 + SLACK
