"""Every cause that `why` can answer with: one file each in this folder, found by listing it.

All else that needs to know of causes (ranking, restarts, remedies, documentation) is derived from these records.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from holdfast.causes.form import CauseRecord, Rule

# Also the order in which rules of equal confidence are heard.
FAMILIES = ("memory", "limits", "gpu", "data", "numerics", "process", "ranks")


def _found() -> dict[str, CauseRecord]:
    modules = (module for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    records = [import_module(f"{__name__}.{module.name}").CAUSE for module in modules]
    records.sort(key=lambda record: (FAMILIES.index(record.family), record.id))
    return {record.id: record for record in records}


CAUSES: dict[str, CauseRecord] = _found()

# Symptoms that a more particular cause explains.
GENERIC = frozenset(record.id for record in CAUSES.values() if record.symptom)
# What ends no run by itself, and the endings it explains.
EXPLAINS = {record.id: frozenset(record.explains) for record in CAUSES.values() if record.explains}
SAYS_MORE = {record.id: frozenset(record.says_more_than) for record in CAUSES.values() if record.says_more_than}
RESTARTS = {record.id: record.restart for record in CAUSES.values() if record.restart is not None}
EXCEPTIONS: tuple[tuple[str, Rule], ...] = tuple(
    (record.id, rule) for record in CAUSES.values() for rule in record.exceptions
)
LINES: tuple[tuple[str, Rule], ...] = tuple((record.id, rule) for record in CAUSES.values() for rule in record.lines)


@cache
def those(flag: str) -> frozenset[str]:
    """The ids of the causes whose record has this set."""
    return frozenset(record.id for record in CAUSES.values() if getattr(record, flag))
