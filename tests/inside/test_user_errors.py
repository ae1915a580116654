"""An error of the user's passes through calls of ours unchanged, and none of our frames are seen in it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.inside import never_raise, user_errors


def fails() -> None:
    raise KeyError("theirs")


def through_ours(call: Callable[..., Any]) -> None:
    """A frame of a file of ours between two of the user's."""
    space: dict[str, Any] = {"call": call}
    exec(compile("def ours():\n    call()", user_errors.OURS + "between.py", "exec"), space)
    space["ours"]()


def names(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_the_error_is_the_same_object_with_the_users_frames_alone() -> None:
    error = KeyError("theirs")

    def raises() -> None:
        raise error

    with pytest.raises(KeyError) as raised, user_errors.passing:
        through_ours(lambda: through_ours(raises))
    assert raised.value is error
    assert "ours" not in names(error) and names(error)[-1] == "raises" and names(error).count("through_ours") == 2


def test_without_it_our_frame_would_be_seen() -> None:
    with pytest.raises(KeyError) as raised:
        through_ours(fails)
    assert "ours" in names(raised.value)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, StopIteration])
def test_whatever_it_is_it_goes_on(kind: type[BaseException]) -> None:
    def raises() -> None:
        raise kind

    with pytest.raises(kind), user_errors.passing:
        raises()


def test_what_returns_is_returned_and_nothing_is_told() -> None:
    told: list[Any] = []
    never_raise.on_failure(lambda *what: told.append(what))
    with user_errors.passing:
        assert len("abc") == 3
    assert told == []
