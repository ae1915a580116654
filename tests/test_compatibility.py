"""docs/compatibility.md keeps the rows of environments that were not run this time."""

from __future__ import annotations

import pytest

from tests import compatibility
from tests.compatibility import ENVIRONMENTS, HEADS, PAGE, merged, page
from tests.crash.resume import script_of


def _row(name: str, result: str) -> list[str]:
    return [name, "Python 3.9", "loop", result, *["yes"] * (len(HEADS) - 4)]


def test_rows_of_other_environments_stay_and_come_in_the_order_of_the_list() -> None:
    first, second, *_ = (environment.name for environment in ENVIRONMENTS)
    before = page([_row(first, "differs"), _row(first, "same"), _row(second, "same")])
    rows = merged([_row(first, "as now")], before)
    assert rows == [_row(first, "as now"), _row(second, "same")]
    assert merged([], page([_row("no longer there", "same")])) == []


def test_the_page_has_every_environment() -> None:
    rows = merged([], PAGE.read_text(encoding="utf-8"))
    assert page(rows) == PAGE.read_text(encoding="utf-8")
    assert [row[0] for row in rows] == [one.name for one in ENVIRONMENTS for _ in one.scripts]


@pytest.mark.parametrize("what", ["LIGHTNING", "HUGGING_FACE", "JAX"])
def test_trainers_and_jax_are_killed_in_scripts_that_know_the_kind(what: str) -> None:
    _script, kind = next(iter(getattr(compatibility, what).values()))
    assert kind in script_of(kind).read_text(encoding="utf-8")
