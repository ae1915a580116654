"""The random state of Python and NumPy, as values that can be kept and put back.

A script that sets no seed draws other numbers each time it is started. So that its next attempt splits its data and
builds its model as the first one did, the state found at the framework's import is recorded once and put back then. A
script that seeds itself, before or after, is not affected: its own seed gives the same state both times.
"""

from __future__ import annotations

import json
import os
import random
import sys
import zlib
from typing import Any, Optional

from .checkpoint_store import STARTED


def capture() -> dict[str, Any]:
    numpy = sys.modules.get("numpy")
    state: dict[str, Any] = {"python": random.getstate()}
    if numpy is not None and hasattr(numpy, "random"):
        state["numpy"] = numpy.random.get_state()
    return state


def restore(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        numpy.random.set_state(state["numpy"])


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return _plain(one) == _plain(other)


class _Begun:
    seed = 0


def begin_alike(directory: str, resume: bool) -> int:
    """Records where this script's randomness begins, or puts it back: once a process, at its first framework.

    Returns a number that stays the same as well; 0 where nothing is recorded.
    """
    if not _Begun.seed:
        _Begun.seed = _begin(directory, resume)
    return _Begun.seed


def _begin(directory: str, resume: bool) -> int:
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return 0  # a worker of the script's
    path = os.path.join(directory, f"{STARTED}{zlib.crc32(repr(sys.argv).encode()):08x}.json")
    if resume:
        recorded = _read(path)
        if recorded is not None:
            restore(_revived(recorded))
            return int(recorded["seed"])
    seed = int.from_bytes(os.urandom(6), "little") | 1
    os.makedirs(directory, mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({**_plain(capture()), "seed": seed}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    return seed


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it."""
    version, numbers, gauss = state["python"]
    plain: dict[str, Any] = {"python": [version, list(numbers), gauss]}
    if "numpy" in state:
        name, keys, position, has_gauss, cached = state["numpy"]
        plain["numpy"] = [name, [int(key) for key in keys], int(position), int(has_gauss), float(cached)]
    return plain


def _revived(plain: dict[str, Any]) -> dict[str, Any]:
    version, numbers, gauss = plain["python"]
    state: dict[str, Any] = {"python": (version, tuple(numbers), gauss)}
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in plain:
        name, keys, position, has_gauss, cached = plain["numpy"]
        state["numpy"] = (name, numpy.array(keys, dtype="uint32"), position, has_gauss, cached)
    return state


def _read(path: str) -> Optional[dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
