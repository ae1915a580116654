"""The signals by which a process is asked for its stacks never end it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.inside.stacks import ASK, STANDING

# What is left to run when Python has ended: C's `raise`, called with the exit code.
ENDS = """
import ctypes, runpy, sys
runpy.run_path(sys.argv[1])["install"](sys.argv[2])
libc = ctypes.CDLL(None)
libc.on_exit(ctypes.cast(getattr(libc, "raise"), ctypes.c_void_p), None)
sys.exit(int(sys.argv[3]))
"""


@pytest.mark.parametrize("number", [STANDING, ASK])
def test_one_that_comes_when_python_has_ended_does_not_change_how_the_script_ends(number: int, tmp_path: Path) -> None:
    source = Path(sys.modules["holdfast.inside.stacks"].__file__ or "")
    done = subprocess.run([sys.executable, "-c", ENDS, str(source), str(tmp_path), str(number)], check=False)
    assert done.returncode == number
