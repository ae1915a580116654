"""A line of ours stands by itself: on a terminal with progress bars, and in a pipe that stdout and stderr share."""

from __future__ import annotations

import re
import subprocess

import pytest

from holdfast.supervisor import own_lines
from holdfast.supervisor.own_lines import OwnLines
from tests.run.test_terminal import OnTerminal
from tests.workplace import HOLDFAST, Workplace

SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Screen:
    """What a person sees: a terminal as far as progress bars use one."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0

    @property
    def rows(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._rows]

    def show(self, text: str) -> None:
        at = 0
        while at < len(text):
            if found := SEQUENCE.match(text, at):
                self._obey(found[1], found[2])
                at = found.end()
            else:
                self._put(text[at])
                at += 1

    def _obey(self, number: str, do: str) -> None:
        row = self._rows[self._row]
        if do == "A":
            self._row = max(0, self._row - int(number or 1))
        elif do == "J" or (do == "K" and number in ("", "0")):
            del row[self._column :]
            if do == "J":
                del self._rows[self._row + 1 :]
        elif do == "K":
            row.clear()

    def _put(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._row += 1
            if self._row == len(self._rows):
                self._rows.append([])
        elif char == "\b":
            self._column = max(0, self._column - 1)
        else:
            row = self._rows[self._row]
            row.extend(" " * (self._column + 1 - len(row)))
            row[self._column] = char
            self._column += 1


BARS = """
    import os, sys, time
    os.environ["KERAS_BACKEND"] = "numpy"
    import holdfast
    from holdfast.inside.api import _recorder
    from tqdm import tqdm
    from keras.utils import Progbar

    def turn(bar, i):
        time.sleep(0.03)
        if i == 8:
            _recorder().event("rescue.refused", where=bar, reason="on purpose")

    holdfast.step()
    for i in tqdm(range(50), desc="plain"): turn("plain", i)
    for _ in tqdm(range(1), desc="outer", position=0):
        for i in tqdm(range(50), desc="a long description, longer than a line of ours would ever be " * 2, position=1, leave=False):
            turn("nested", i)
    keras = Progbar(50)
    for i in range(50):
        turn("keras", i)
        keras.update(i + 1, [("loss", 1.0)])
    for i in range(50):
        print(f"by hand {i + 1} of 50", end="\\r", flush=True)
        turn("by hand", i)
    print("\\nready", flush=True)
"""


def test_no_progress_bar_is_torn_and_every_line_of_ours_is_whole(workplace: Workplace) -> None:
    terminal = OnTerminal(workplace, workplace.script(BARS), program=["env", "TERM=xterm", *HOLDFAST, "run"])
    terminal.resize(40, 250)
    seen = terminal.wait_to_see(b"ready")
    assert terminal.end() == 0
    screen = Screen()
    screen.show(seen.decode())
    ours = [row for row in screen.rows if "holdfast:" in row]
    said = "a batch that does not fit in memory is not run in smaller pieces: on purpose"
    assert {f"holdfast: {bar}: {said}" for bar in ("plain", "nested", "keras", "by hand")} <= set(ours), screen.rows
    assert not [row for row in ours if not row.startswith("holdfast:") or re.search("[|█━]", row)], screen.rows
    for last in ("plain: 100%|█", "outer: 100%|█", "50/50 ━", "by hand 50 of 50"):
        assert [row for row in screen.rows if row.startswith(last)], screen.rows


def test_in_a_pipe_that_both_share_it_begins_a_line(workplace: Workplace) -> None:
    """`… 2>&1 | tee log`, in the middle of a line on stdout."""
    command = workplace.script("""
        import time, holdfast
        from holdfast.inside.api import _recorder
        print("step 1 ...", end="", flush=True)
        holdfast.step()
        _recorder().event("rescue.refused", where="train", reason="on purpose")
        time.sleep(1.5)
        print(" done")
    """)
    done = workplace.run(command, capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    first, second, *rest = done.stdout.decode().splitlines()
    assert (first, second.startswith("holdfast: training: a batch"), rest) == ("step 1 ...", True, [" done"])


class Sink:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, same_place: bool = True) -> None:
        self.now, self.written = 100.0, b""
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(own_lines.time, "monotonic", lambda: self.now)
        self.lines = OwnLines(self._write, True, same_place)

    def _write(self, fd: int, piece: memoryview) -> int:
        self.written += bytes(piece)
        return 0

    def prints(self, data: bytes, fd: int = 1) -> None:
        self.lines.passed_on(fd, memoryview(data))

    def said_after(self, seconds: float) -> bytes:
        self.now += seconds
        self.written = b""
        self.lines.say("\n")
        return self.written


@pytest.mark.parametrize(
    ("printed", "before"),
    [
        (b"", b""),
        (b"all of a line\n", b""),
        (b"\r 45%|####    | 45/100", b"\n\r\x1b[J"),
        (b"step 3\r", b"\n\r\x1b[J"),  # it is still to be seen
        (b"\r100%|####|\r            \r", b"\r\x1b[J"),  # a bar that has gone
        (b"\r100%|####|\r\x1b[K", b"\r\x1b[J"),
    ],
)
def test_a_new_line_is_begun_where_something_stands(
    monkeypatch: pytest.MonkeyPatch, printed: bytes, before: bytes
) -> None:
    sink = Sink(monkeypatch)
    if printed:
        sink.prints(printed)
    sink.lines.add("holdfast: x")
    assert sink.said_after(1.0) == before + b"holdfast: x\n"


def test_half_of_a_drawing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(monkeypatch)
    sink.prints(b"\r 45%|##")
    sink.lines.add("holdfast: x")
    assert sink.said_after(0.001) == b""
    sink.prints(b"##    | 45/100")
    assert sink.lines.wait_s() == pytest.approx(own_lines.QUIET_S)
    assert sink.said_after(0.021).endswith(b"holdfast: x\n")


@pytest.mark.parametrize("cut", [b"\xe2\x96", b"\x1b[3"])
def test_a_script_that_never_pauses_is_interrupted_but_not_within_a_character(
    monkeypatch: pytest.MonkeyPatch, cut: bytes
) -> None:
    sink = Sink(monkeypatch)
    sink.lines.add("holdfast: x")
    for _ in range(60):
        sink.prints(b"\r 45%|##" + cut)
        assert sink.said_after(0.01) == b""
    sink.prints(b"\r 45%|##  |")
    assert sink.said_after(0.01) == b"\n\r\x1b[Jholdfast: x\n"


def test_what_goes_elsewhere_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink(monkeypatch, same_place=False)
    sink.prints(b"half a line in a file")
    sink.lines.add("holdfast: x")
    assert sink.said_after(0.0) == b"holdfast: x\n"
