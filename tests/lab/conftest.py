import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.case import Case, load

EXPECT = """
title = "A case"
framework = "torch"
{cause}
outcome = "{outcome}"
exit_code = {exit_code}
prints = "hello"
{more}
"""


@pytest.fixture
def make_case(tmp_path: Path) -> Callable[..., Case]:
    """A case in a folder of its own: `make_case(train="…", more="…")`."""

    def make(
        *,
        train: str = "print('hello')\n",
        healthy: str | None = "print('hello')\n",
        cause: str = 'cause = "unhandled-exception"',
        outcome: str = "failed",
        exit_code: int = 1,
        more: str = "",
    ) -> Case:
        folder = tmp_path / "some-case"
        folder.mkdir()
        (folder / "train.py").write_text(train)
        if healthy is not None:
            (folder / "healthy.py").write_text(healthy)
        text = EXPECT.format(cause=cause, outcome=outcome, exit_code=exit_code, more=more)
        (folder / "expect.toml").write_text(text)
        return load(folder)

    return make
