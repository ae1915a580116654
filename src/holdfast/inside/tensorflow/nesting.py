"""What keeps us out of the way: a step inside a step is not counted again, and our frames are not shown."""

from __future__ import annotations

import os
import threading
from typing import List

from . import seams


class Nesting(threading.local):
    depth = 0


nesting = Nesting()
_hidden: List[str] = []


def hide_frames(filtering: str) -> None:
    """Keras and TensorFlow cut their own frames out of a traceback, and keep their last one only where nothing is left:
    with ours in it, the line the error came from would be gone."""
    inside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    seams.hide_frames(filtering, inside)
    if filtering == seams.TRACEBACKS and inside not in _hidden:
        _hidden.append(inside)
        seams.leave_out_of_graphs(
            f"{folder}{os.sep}{name}" for folder, _, names in os.walk(inside) for name in names if name.endswith(".py")
        )
