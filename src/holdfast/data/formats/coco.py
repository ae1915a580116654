"""COCO annotations: a JSON file of images, categories and boxes in pixels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.data.formats.contract import Chunk, Opened, Part, Schema, Trouble, Unreadable

LARGEST = 256 << 20  # is parsed as one piece, and takes several times as much
NAMED = 20
SLACK = 1.0  # pixels: rounding in the file


def is_coco(path: Path) -> bool:
    with open(path, "rb") as file:
        start = file.read(1 << 16)
        file.seek(0, 2)
        file.seek(max(0, file.tell() - (1 << 16)))
        end = file.read()
    return b'"annotations"' in start + end and b'"images"' in start + end


class CocoTable:
    format, member, hashes_rows = "coco", "", False

    def __init__(self, path: Path) -> None:
        self.path, self.schema, self.bytes = path, Schema((), None, None), path.stat().st_size
        if self.bytes > LARGEST:
            raise Unreadable(f"it is larger than {LARGEST >> 20} MiB, which cannot be parsed piece by piece")

    def parts(self) -> Iterator[Part]:
        yield Part(None, self.bytes)

    def read(self, part: Part) -> Iterator[Chunk]:
        try:
            content = json.loads(self.path.read_bytes())
            sizes = {image["id"]: (image["width"], image["height"]) for image in content["images"]}
            boxes = content["annotations"]
            categories = {category["id"]: str(category["name"]) for category in content.get("categories", [])}
            troubles = tuple(_judged(boxes, sizes, categories))
            names = Counter(str(categories.get(box.get("category_id"), "?")) for box in boxes)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Unreadable(f"it is no COCO file: {type(error).__name__} {str(error)[:80]}") from None
        yield Chunk(len(boxes), (), None, troubles, None, {"class": names})

    def close(self) -> None:
        pass


def _judged(
    boxes: list[dict[str, Any]], sizes: dict[Any, tuple[float, float]], categories: dict[Any, str]
) -> Iterator[Trouble]:
    outside, unknown, astray = [], [], []
    for row, annotation in enumerate(boxes):
        if categories and annotation.get("category_id") not in categories:
            unknown.append(row)
        if annotation.get("image_id") not in sizes:
            astray.append(row)
        elif "bbox" in annotation:
            x, y, width, height = annotation["bbox"]
            wide, high = sizes[annotation["image_id"]]
            inside = x >= -SLACK and y >= -SLACK and x + width <= wide + SLACK and y + height <= high + SLACK
            if not (inside and width > 0 and height > 0):
                outside.append(row)
    for id, text, rows, breaks in (
        ("range", "boxes that are empty or reach outside their image: {count}", outside, False),
        ("label-range", "annotations of a category that is not listed: {count}", unknown, True),
        ("shape", "annotations of an image that is not listed: {count}", astray, True),
    ):
        if rows:
            yield Trouble(id, text, tuple(rows[:NAMED]), len(rows), breaks, "bbox" if id == "range" else "")


def open_tables(path: Path) -> Opened:
    return Opened(tables=[CocoTable(path)])
