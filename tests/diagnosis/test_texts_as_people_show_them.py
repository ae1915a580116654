"""What a person puts around a text to show it changes nothing of what it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.diagnosis.pasted import SHORT, unwrapped
from tests.diagnosis.test_logs import cause

TEXTS = {
    "Killed": "host-memory-exhausted",
    "KeyboardInterrupt": "interrupted",
    'Traceback (most recent call last):\n  File "fit.py", line 3, in <module>\n    rows = load()\nMemoryError': "host-memory-exhausted",
    "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.": "shared-memory-exhausted",
}  # fmt: skip


def _each(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) for line in text.split("\n"))


WAYS: dict[str, Callable[[str], str]] = {
    "quoted": _each(lambda line: "> " + line),
    "indented": _each(lambda line: "    " + line),
    "each line as code": _each(lambda line: f"`{line}`"),
    "one pair of backticks": lambda text: f"`{text}`",
    "one pair of quotation marks": lambda text: f'"{text}"',
    "a fence": lambda text: f"```python\n{text}\n```",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("text", "named"), TEXTS.items())
def test_marks_around_a_text_change_nothing(text: str, named: str, way: str) -> None:
    assert cause(text + "\n") == named
    assert cause(WAYS[way](text) + "\n") == named


def test_an_emphasised_line_is_read_without_its_emphasis() -> None:
    assert cause("step 12 done\n\n**Killed**\n") == cause("step 12 done\n\nKilled\n") == "host-memory-exhausted"


def test_marks_that_belong_to_the_text_stay() -> None:
    for line in (
        "*** Error in `python': double free ***",
        "*****************",
        ">>> import torch",
        '"echo 0 > /proc/x" disables this message.',
        "'a' is not 'b'",
        "`a` and `b`",
        "** **",
        "",
    ):
        assert unwrapped([line]) == [(0, line)]


def test_words_in_passing_are_not_the_log() -> None:
    assert cause("It trains now. `Killed` was in my notes of last week, and `loss: nan` once.\n") is None


def test_a_long_text_is_left_as_it_is() -> None:
    lines = ["> loss 1.0"] * (SHORT + 1)
    assert [line for _, line in unwrapped(lines)] == lines
