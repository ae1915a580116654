"""The user's frames on the stack: which they are, where each stands, and whether a library runs the loop instead."""

from __future__ import annotations

import bisect
import dis
import os
import zlib
from types import CodeType, FrameType
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ..library_paths import is_library
from .refusal import CannotTake, RunByALibrary

# Frames of these may stand between the user's and the call that is followed: they keep nothing that training depends on.
TRANSPARENT = (
    "tqdm", "torch/", "accelerate/optimizer", "tensorflow/python/data/ops/", "tensorflow/python/eager/polymorphic_function/",
    "tensorflow/python/util/traceback_utils",
)  # fmt: skip
UPDATING = ("keras/", "tensorflow/")  # and these between the user's and an update
# These call a function of the user's once: command lines, decorators.
CALLERS = (
    "lightning/pytorch/", "pytorch_lightning/", "click", "typer", "hydra", "absl", "fire", "runpy", "<frozen runpy>", "functools", "contextlib", "importlib",
    "<frozen importlib", "tensorflow/python/platform/app", "torch/utils/_contextlib", "torch/distributed/elastic/multiprocessing/errors",
)  # fmt: skip
INNER = ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")

CodeKey = Tuple[str, str, int]


class Stand(NamedTuple):
    """One frame's place, to be recognised in another process."""

    key: CodeKey
    instruction: int
    line: int

    @property
    def words(self) -> str:
        return f"{self.key[0]}:{self.line} ({self.key[1]})"


def users(frame: Optional[FrameType]) -> List[FrameType]:
    """Outermost first."""
    found = []
    while frame is not None:
        if not _is_library(frame.f_code):
            found.append(frame)
        frame = frame.f_back
    return found[::-1]


def innermost_user(frame: Optional[FrameType]) -> Optional[FrameType]:
    while frame is not None and _is_library(frame.f_code):
        frame = frame.f_back
    return frame


def stand_of(frame: FrameType) -> Stand:
    return Stand(key_of(frame.f_code), instruction_of(frame), frame.f_lineno)


_offsets: Dict[CodeType, Tuple[List[int], Set[int]]] = {}


def instruction_of(frame: FrameType) -> int:
    """The offset of the instruction under way, the same each time.

    In Python 3.11 `f_lasti` may point into the cache that follows a call; and what is called often is called by the
    instruction before it, once the interpreter has adapted itself.
    """
    found = _offsets.get(frame.f_code)
    if found is None:
        instructions = list(dis.get_instructions(frame.f_code))
        prepares = {one.offset for one in instructions if one.opname == "PRECALL"}
        found = _offsets[frame.f_code] = [one.offset for one in instructions], prepares
    offsets, prepares = found
    number = max(0, bisect.bisect_right(offsets, frame.f_lasti) - 1)
    return offsets[number + (offsets[number] in prepares)]


def stands(frames: List[FrameType]) -> List[Stand]:
    return [stand_of(frame) for frame in frames]


def check_callers(frame: Optional[FrameType], transparent: Tuple[str, ...] = TRANSPARENT) -> None:
    """Nothing but the user's own code may hold a part of the loop's state."""
    seen_user = False
    while frame is not None:
        if _is_library(frame.f_code):
            allowed = CALLERS if seen_user else transparent
            path = frame.f_code.co_filename.replace(os.sep, "/")
            if not _is_ours(path) and not any(f"/{part}" in path or path.startswith(part) for part in allowed):
                if seen_user and innermost_user(frame) is None:
                    return  # what started the script
                raise RunByALibrary(f"the loop is run by a library ({_short(path)})")
        else:
            if frame.f_code.co_name in INNER:
                raise CannotTake(f"a loop inside an expression ({frame.f_code.co_name}, line {frame.f_lineno})")
            seen_user = True
        frame = frame.f_back
    if not seen_user:
        raise CannotTake("no code of the script's own runs the loop")


_libraries: Dict[str, bool] = {}


def follow(path: str) -> None:
    """The functions in this file of a library are followed as the script's own: their variables hold a loop's state."""
    _libraries[path] = False


def _is_library(code: CodeType) -> bool:
    path = code.co_filename
    known = _libraries.get(path)
    if known is None:
        known = _libraries[path] = is_library(path)
    return known


def _is_ours(path: str) -> bool:
    return "holdfast/inside/" in path


def _short(path: str) -> str:
    for mark in ("site-packages/", "dist-packages/"):
        if mark in path:
            return path.rsplit(mark, maxsplit=1)[-1]
    return os.path.basename(path)


_keys: Dict[CodeType, CodeKey] = {}


def key_of(code: CodeType) -> CodeKey:
    key = _keys.get(code)
    if key is None:
        name = getattr(code, "co_qualname", code.co_name)
        key = _keys[code] = (os.path.basename(code.co_filename), name, _content(code))
    return key


def _content(code: CodeType) -> int:
    """The same in every process that runs this source under this Python."""
    check = zlib.crc32(code.co_code)
    for part in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        check = zlib.crc32(repr(part).encode(), check)
    for constant in code.co_consts:
        check = zlib.crc32(_constant(constant).encode("utf-8", "surrogatepass"), check)
    return check


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return str(_content(value))
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    return repr(value)
