"""What keeps us out of the way: a step inside a step is not counted again, and our frames are not shown."""

from __future__ import annotations

import os
import threading

from . import seams


class Nesting(threading.local):
    depth = 0


nesting = Nesting()


def hide_frames(filtering: str) -> None:
    """Keras and TensorFlow cut their own frames out of a traceback, and keep their last one only where nothing is left:
    with ours in it, the line the error came from would be gone."""
    seams.hide_frames(filtering, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
