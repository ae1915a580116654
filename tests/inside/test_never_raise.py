"""Whatever we hang beside the user's call, its failure stays with us and is told once."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from holdfast.inside import never_raise


@pytest.fixture(autouse=True)
def _fresh_edge(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(never_raise, "_edge", never_raise._Edge())
    yield


class Hook:
    def one(self, value: int) -> int:
        return 10 // value

    def with_default(self, value: int = 1) -> int:
        return 10 // value


def test_results_pass_and_faults_do_not() -> None:
    told: list[tuple[str, str]] = []
    never_raise.on_failure(lambda place, reason: told.append((place, reason)))
    for safe in (
        never_raise.guarded(Hook().one),
        never_raise.guarded(Hook().with_default),
        never_raise.guarded(lambda v: 10 // v),
    ):
        assert safe(5) == 2
        assert safe(0) is None
    assert [reason for _, reason in told] == ["ZeroDivisionError: integer division or modulo by zero"] * 3


def test_defaults_keywords_and_partials_are_called_as_they_are() -> None:
    assert never_raise.guarded(Hook().with_default)() == 10
    assert never_raise.guarded(Hook().one)(5) == 2
    assert never_raise.guarded(functools.partial(max, 3))(7) == 7


def test_after_many_failures_hooks_do_nothing_any_more_and_that_is_told() -> None:
    told: list[tuple[str, str]] = []
    never_raise.on_failure(lambda place, reason: told.append((place, reason)))
    safe = never_raise.guarded(Hook().one)
    for _ in range(never_raise.FAILURES - 1):
        safe(0)
    assert safe(5) == 2 and len(told) == 1
    for _ in range(5):
        safe(0)
    assert safe(5) is None
    assert [place for place, _ in told] == ["Hook.one", never_raise.EVERYTHING]
    assert "switched off" in told[-1][1]


def test_a_telling_that_fails_itself_is_not_heard_of() -> None:
    never_raise.on_failure(lambda *_: 1 // 0)
    assert never_raise.guarded(Hook().one)(0) is None


def test_ctrl_c_is_not_ours_to_catch() -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        never_raise.guarded(interrupted)(1)
