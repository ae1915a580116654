"""`holdfast top` in a real terminal (tmux's), of a real run: what is on the screen, and what its keys do."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, is_gone, wait_for

STEPS = """
    import time
    import holdfast

    for step in range(100_000):
        holdfast.step(loss=1.0 / (1 + step))
        time.sleep(0.01)
        if step == 20:
            print("ready", flush=True)
"""


class Terminal:
    """80 columns and 24 rows."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket = f"holdfast-{os.getpid()}-{directory.name}"

    def start(self, *command: str) -> int:
        """The process in it."""
        self._tmux("new-session", "-d", "-x", "80", "-y", "24", "-c", str(self._directory), "--", *command)
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def shows(self, *texts: str) -> str:
        return str(wait_for(lambda: (seen := self.screen()) and all(text in seen for text in texts) and seen))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def close(self) -> None:
        self._tmux("kill-server", check=False)

    def _tmux(self, *words: str, check: bool = True) -> str:
        command = ["tmux", "-L", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=check, timeout=PATIENCE_S).stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def test_a_run_is_watched_looked_into_and_stopped_from_a_terminal(workplace: Workplace, terminal: Terminal) -> None:
    going = workplace.start(workplace.script(STEPS))
    assert going.stdout is not None and going.stdout.readline() == b"ready\n"
    top = terminal.start(*HOLDFAST, "top")
    screen = terminal.shows("running for", "step ", "loss  ", "host  ", "The run is still going.", "q quit")
    assert len(screen.rstrip("\n").split("\n")) <= 24
    terminal.press("s")
    terminal.shows("main thread", "train.py:7 in <module>")
    terminal.press("Escape")
    terminal.shows("what happened", "stacks was asked for")
    terminal.press("x")
    terminal.shows("Stop this run?")
    terminal.press("y")
    assert going.wait(PATIENCE_S) == 128 + signal.SIGTERM
    terminal.shows("stopped after", "Asked to stop (SIGTERM).", "none: the run has ended")
    terminal.press("q")
    wait_for(lambda: is_gone(top))


def test_it_ends_with_its_terminal(workplace: Workplace, terminal: Terminal) -> None:
    workplace.run(workplace.script("print('done')"))
    top = terminal.start(*HOLDFAST, "top")
    terminal.shows("The run finished.", "no training steps seen")
    terminal.close()
    wait_for(lambda: is_gone(top))
