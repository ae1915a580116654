"""Cleaned copies of TFRecord files, and of image folders without the images that do not decode."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np

from holdfast.data.fix.output import Output
from holdfast.data.fix.rules import Rules, cleaned, has_bad_label, is_bad, listed
from holdfast.data.formats.checksums import masked_crc
from holdfast.data.formats.examples_wire import Feature, features_of
from holdfast.data.formats.images import ImageFolder, Looked
from holdfast.data.formats.record_frames import records


def copy_tfrecord(source: Path, names: list[str], rules: Rules, fills: dict[int, float], output: Output) -> None:
    with open(source, "rb") as file, open(output.unfinished, "wb") as into:
        for row, record in enumerate(records(file)):
            own = bytearray(record)
            features = features_of(memoryview(own))  # lists of floats in it are views
            if reason := _reason_to_drop(features, rules):
                output.drop(row, reason)
                continue
            for number, name in enumerate(names):
                if name in features and features[name].kind == "float32" and name != rules.labels:
                    _clean(row, name, features[name], (fills.get(number), rules, output))
            into.write(framed(bytes(own)))


def _reason_to_drop(features: dict[str, Feature], rules: Rules) -> str:
    for name, feature in features.items():
        if isinstance(feature.values, np.ndarray):
            bad = is_bad(feature.values)
            if name == rules.labels and has_bad_label(feature.values, bad, rules.classes).any():
                return f"{name}: no label"
            if rules.drop_rows and bad.any():
                return f"{name}: not finite"
    return ""


def _clean(row: int, name: str, feature: Feature, how: tuple[float | None, Rules, Output]) -> None:
    fill, rules, output = how
    before = np.array(feature.values)
    after, changed = cleaned(before, is_bad(before), fill, rules.clip)
    if changed.any() and isinstance(feature.values, np.ndarray):
        feature.values[:] = after
        output.changes(listed(before[None, :, None], after[None, :, None], changed[None, :, None], row, [name]))


def framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record))


def copy_images(source: Path, output: Output) -> None:
    """Whatever else lies beside them comes along: labels, lists."""
    images = {path: row for row, path in enumerate(ImageFolder(source).files)}
    output.unfinished.mkdir()
    for path in sorted(source.rglob("*")):
        target = output.unfinished / path.relative_to(source)
        if not path.is_file():
            continue
        if path in images and (wrong := Looked(path.read_bytes()).wrong):
            output.drop(images[path], f"{path.relative_to(source)}: {wrong}")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
