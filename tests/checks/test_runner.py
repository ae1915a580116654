from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast import checks
from holdfast.checks import CHECKS
from holdfast.checks.contract import Check, Here, Line, ok
from holdfast.checks.runner import look_at_all
from holdfast.views.check_text import as_text


def fine(here: Here) -> Iterator[Line]:
    yield ok("fine", "all is well")


def raises(here: Here) -> Iterator[Line]:
    yield ok("first", "so far")
    raise KeyError("no such thing")


def test_one_that_hangs_or_fails_costs_its_own_line_alone(here: Here) -> None:
    never = threading.Event()

    def hangs(here: Here) -> Iterator[Line]:
        yield ok("before", "so far")
        here.asked("/mnt/dead")
        never.wait()

    checks = [
        Check("hangs", hangs, "bad", "umount it"),
        Check("raises", raises, "warn", ""),
        Check("fine", fine, "warn", ""),
    ]
    began = time.monotonic()
    found = look_at_all(here, checks, 0.3)
    assert time.monotonic() - began < 5
    never.set()
    assert [(line.id, line.status) for line in found] == [
        ("before", "ok"), ("hangs", "bad"), ("first", "ok"), ("raises", "warn"), ("fine", "ok"),
    ]  # fmt: skip
    assert found[1].text == "/mnt/dead did not answer within 0.3 s" and found[1].fix == "umount it"
    assert "KeyError" in found[3].text


def test_each_file_of_the_room_that_looks_is_listed() -> None:
    room = Path(str(checks.__file__)).parent
    looking = {file.stem for file in room.glob("*.py") if "\ndef look(here: Here)" in file.read_text()}
    assert {check.look.__module__.rpartition(".")[2] for check in CHECKS} == looking
    assert len({check.id for check in CHECKS}) == len(CHECKS) == len(looking)


def test_the_worst_is_shown_first_with_its_fix_and_nothing_moves_the_cursor() -> None:
    lines = [
        ok("memory", "20 GiB"),
        Line("shm", "bad", "/dev/shm is small", "docker run --shm-size=8g " * 6),
        Line("gpu", "warn", "GPU \033[31mred", "cool it"),
    ]
    text = as_text(lines, 0.5, 80, colour=False)
    shown = [line for line in text.splitlines() if line[:1] not in ("", " ")]
    assert [line.split()[0] for line in shown] == ["bad", "warn", "ok", "this"]
    assert "\033" not in text and max(map(len, text.splitlines())) <= 80
    assert "--shm-size=8g" in text and text.endswith("1 ok, 1 to look at, 1 bad, in 0.5 s")
    assert "\033[31mbad" in as_text(lines, 0.5, 80, colour=True)
