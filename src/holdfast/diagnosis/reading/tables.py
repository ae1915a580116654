"""All families side by side."""

from __future__ import annotations

from holdfast.diagnosis.reading import data, general, gpu, limits, memory, numerics, process, ranks
from holdfast.diagnosis.reading.rule import flatten

FAMILIES = (memory, limits, gpu, data, numerics, process, ranks, general)
EXCEPTIONS = flatten(family.EXCEPTIONS for family in FAMILIES)
LINES = flatten(family.LINES for family in FAMILIES)
