"""All families side by side."""

from __future__ import annotations

from holdfast.diagnosis.reading import data, generic_wording, gpu, limits, memory, numerics, process, ranks
from holdfast.diagnosis.reading.rule import flatten

FAMILIES = (memory, limits, gpu, data, numerics, process, ranks, generic_wording)
EXCEPTIONS = flatten(family.EXCEPTIONS for family in FAMILIES)
LINES = flatten(family.LINES for family in FAMILIES)
