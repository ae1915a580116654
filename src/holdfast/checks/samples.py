"""One reading of a probe, as numbers."""

from __future__ import annotations

from holdfast.checks.contract import Here
from holdfast.probes import Probe, Scope
from holdfast.vocabulary import Sample


def scope_of(here: Here) -> Scope:
    return Scope(here.pid, here.pid, (here.cwd,), here.root)


def read_once(kind: type[Probe], here: Here) -> dict[str, float | None]:
    """Raises Missing as the probe does."""
    readings = kind(scope_of(here)).read(0.0)
    return {reading.name: reading.value for reading in readings if isinstance(reading, Sample)}
