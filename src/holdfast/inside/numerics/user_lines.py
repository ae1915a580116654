"""The user's own line at which something was computed: the nearest frame that is no library's."""

from __future__ import annotations

import linecache
import os
from types import FrameType
from typing import Iterator, Optional, Tuple

from ..library_paths import is_library
from ..user_errors import OURS

TEXT = 160  # characters of a line that are told


def is_users(path: str) -> bool:
    return not path.startswith(OURS) and not is_library(path)


def frames_of_user(frame: Optional[FrameType]) -> Iterator[FrameType]:
    """From the innermost one outwards."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def line_of(frame: Optional[FrameType]) -> Optional[Tuple[str, str]]:
    """(`train.py:31`, what stands there) of the innermost frame of the user's."""
    found = next(frames_of_user(frame), None)
    return None if found is None else described(found.f_code.co_filename, found.f_lineno)


def described(path: str, number: int) -> Tuple[str, str]:
    return f"{os.path.basename(path)}:{number}", linecache.getline(path, number).strip()[:TEXT]
