"""Threads that frameworks start against the processors this may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from holdfast.checks.contract import Here, Line, ok, warn
from holdfast.checks.samples import scope_of
from holdfast.probes.run_queue import usable_cores

VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
)  # fmt: skip
TOO_MANY_RATIO = 2.0  # threads for each core that a quota leaves


def look(here: Here) -> Iterator[Line]:
    cores = usable_cores(scope_of(here))
    if cores is None:
        return
    seen = len(os.sched_getaffinity(here.pid))
    found = [*_set_too_high(here, cores), *_quota_overlooked(here, cores, seen)]
    yield from found or [ok("cpu-threads", f"{cores:g} cores to use, and no more threads asked for")]


def _set_too_high(here: Here, cores: float) -> Iterator[Line]:
    for name in VARIABLES:
        value = here.environment.get(name, "").split(",")[0].strip()  # OpenMP takes one for each level
        if value and not value.isdigit():
            yield warn("cpu-threads", f"{name}={value} is no number of threads", f"unset {name}")
        elif value and int(value) > math.ceil(cores):
            text = f"{name}={value}, and there are {cores:g} cores to use: threads take turns"
            yield warn("cpu-threads", text, f"export {name}={max(1, math.floor(cores))}")


def _quota_overlooked(here: Here, cores: float, seen: int) -> Iterator[Line]:
    """Frameworks count the processors they see, not a container's share of them."""
    if seen >= TOO_MANY_RATIO * cores and not here.environment.get("OMP_NUM_THREADS"):
        text = f"{seen} processors are seen, and the quota of this container is {cores:g}: a framework starts {seen} threads"
        yield warn("cpu-threads", text, f"export OMP_NUM_THREADS={max(1, math.floor(cores))}")
