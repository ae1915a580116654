"""Which source files are a library's, Python's or Holdfast's own, and not the user's: the one pattern for it."""

from __future__ import annotations

import re

_LIBRARY = re.compile(
    r"site-packages|dist-packages"
    r"|/lib(?:64)?/python\d|anaconda\d?[\\/]lib|[\\/]lib[\\/](?:multiprocessing|runpy|threading)|importlib/_bootstrap"
    # Made while running. Not <stdin>, <ipython-input-…> or <cell>: that is what the user typed.
    r"|^<(?:frozen|string|__array|decorator)|__autograph_generated|\.pyx$"
    # Ours may lie anywhere: its words are of rows and batches, and it stands in every stack of a step.
    r"|holdfast[\\/]inside[\\/]"
)


def is_library(path: str) -> bool:
    return _LIBRARY.search(path) is not None
