"""What faulthandler prints in this Python, read back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from holdfast.stack_dumps import Frame, current_frames, thread_stacks

BREAKS = """
import faulthandler, threading, time

def wait():
    time.sleep(60)

def breaks():
    faulthandler._sigsegv()

threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
breaks()
"""
ASKED = """
import faulthandler, sys

def train():
    faulthandler.dump_traceback(file=sys.stderr, all_threads=ALL)

train()
"""


def _printed(tmp_path: Path, source: str) -> list[str]:
    script = tmp_path / "train.py"
    script.write_text(source)
    command = [sys.executable, "-X", "faulthandler", str(script)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False).stderr.splitlines()


def test_the_thread_that_broke_is_told_from_one_that_waits(tmp_path: Path) -> None:
    lines = _printed(tmp_path, BREAKS)
    stacks = thread_stacks(lines)
    assert [stack.current for stack in stacks].count(True) == 1 and len(stacks) == 2
    assert [frame.function for frame in current_frames(lines)] == ["breaks", "<module>"]
    waiting = next(stack for stack in stacks if not stack.current)
    assert waiting.frames[0] == Frame(str(tmp_path / "train.py"), 5, "wait")


def test_the_answer_of_one_thread_or_of_all_is_read_alike(tmp_path: Path) -> None:
    for every in ("True", "False"):
        lines = _printed(tmp_path, ASKED.replace("ALL", every))
        assert [frame.function for frame in current_frames(lines)] == ["train", "<module>"], lines


def test_a_traceback_among_it_adds_no_frames() -> None:
    lines = [
        "Current thread 0x00007f22 (most recent call first):",
        '  File "train.py", line 5 in step',
        '  File "train.py", line 9, in of_a_traceback',
    ]
    assert [frame.function for frame in current_frames(lines)] == ["step"]
