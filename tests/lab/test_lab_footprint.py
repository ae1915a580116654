import os
from dataclasses import replace

import pytest

from lab import footprint
from lab.case import Limits
from lab.stage import CannotStage

ABOVE = Limits(memory=100 << 20, memory_above_imports=True, cpu_seconds=2, cpu_above_imports=True)


def test_a_limit_above_the_imports_becomes_a_number_larger_than_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "FRAMEWORKS", {"torch": ("json",)})
    limits = footprint.resolved(ABOVE, "torch", os.environ)
    assert limits.memory is not None and 100 << 20 < limits.memory < 200 << 20
    assert limits.cpu_seconds is not None and limits.cpu_seconds > 2
    assert not limits.memory_above_imports and not limits.cpu_above_imports


def test_what_is_imported_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "FRAMEWORKS", {"torch": ("json",), "jax": ("numpy", "psutil", "asyncio")})
    small, large = (footprint.resolved(ABOVE, name, os.environ).memory for name in ("torch", "jax"))
    assert small is not None and large is not None and large > small


def test_plain_limits_are_left_as_they_are_and_measure_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "FRAMEWORKS", {})
    plain = replace(ABOVE, memory_above_imports=False, cpu_above_imports=False)
    assert footprint.resolved(plain, "torch", os.environ) == plain


def test_an_import_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "FRAMEWORKS", {"torch": ("no_such_module",)})
    with pytest.raises(CannotStage, match="no_such_module cannot be imported"):
        footprint.resolved(ABOVE, "torch", os.environ)
