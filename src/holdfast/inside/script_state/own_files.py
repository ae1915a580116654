"""The files a script saves as its checkpoints, and whether it loads one of them when it is started again.

A script that does so resumes by itself: a checkpoint of ours must not be put over what it has loaded.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from typing import Any, Callable, List, Set

from ..never_raise import guarded
from ..telemetry import Recorder
from ..user_errors import passing

FILE = "own-files.json"
MOST = 1000  # names; beyond that, those of files that are gone are forgotten


class OwnFiles:
    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, FILE)
        self._before = set(_read(self._path))  # of earlier attempts
        self._here: Set[str] = set()
        self._follows_renames = False

    @guarded
    def saved(self, target: Any) -> None:
        path = _path_of(target)
        if path is not None:
            self._note(path)

    @guarded
    def renamed(self, source: Any, target: Any) -> None:
        """Many write beside the file first, so that it is never half written, or copy the best one. A folder may be meant."""
        before, after = _path_of(source), _path_of(target)
        if before is None or after is None:
            return
        inside = os.path.join(before, "")
        for name in [one for one in self._here if one == before or one.startswith(inside)]:
            self._note(after + name[len(before) :])

    def _note(self, path: str) -> None:
        if path in self._here:
            return
        self._here.add(path)
        if not self._follows_renames:
            self._follows_renames = True
            for owner, name in ((os, "replace"), (os, "rename"), (shutil, "copyfile")):
                setattr(owner, name, _renaming(self, getattr(owner, name)))
        if path not in self._before:
            if len(self._before) >= MOST:
                self._before = {name for name in self._before if os.path.exists(name)}
            self._before.add(path)
            _write(self._path, sorted(self._before))

    def holds(self, folder: str) -> bool:
        """Whether an earlier attempt has written into it."""
        inside = os.path.join(os.path.realpath(folder), "")
        return any(name.startswith(inside) and name not in self._here for name in self._before)

    def is_from_before(self, source: Any) -> str:
        """Its name, where an earlier attempt has written it and this one has not."""
        path = _path_of(source)
        return path if path is not None and path in self._before and path not in self._here else ""


def _renaming(own: OwnFiles, rename: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rename)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2:
            own.renamed(*args)  # before it is done: killed in between, the next attempt would not know the file
        with passing:
            return rename(*args, **kwargs)

    return renamed


def saving(own: OwnFiles, save: Callable[..., Any], number: int) -> Callable[..., Any]:
    """A function that saves to what is its argument of this number, or to the path that it returns."""

    @functools.wraps(save)
    def saved(*args: Any, **kwargs: Any) -> Any:
        own.saved(_argument(args, kwargs, number))  # before it is done, as above
        with passing:
            result = save(*args, **kwargs)
        if isinstance(result, (str, bytes, os.PathLike)):
            own.saved(result)
        return result

    return saved


def loading(
    own: OwnFiles, load: Callable[..., Any], number: int, is_awaited: Callable[[], bool], found: Callable[[str], None]
) -> Callable[..., Any]:
    """Only in a process that is to go on, and of interest only until it has."""

    @functools.wraps(load)
    def loaded(*args: Any, **kwargs: Any) -> Any:
        with passing:
            result = load(*args, **kwargs)
        path = own.is_from_before(_argument(args, kwargs, number)) if is_awaited() else ""
        if path:
            found(path)
        return result

    return loaded


def tell_it_goes_on_by_itself(recorder: Recorder, path: str) -> None:
    recorder.event("checkpoint.own", path=path)
    words = f"holdfast: the script goes on from its own checkpoint, {path}; Holdfast puts none over it"
    print(words, file=sys.stderr, flush=True)


def _argument(args: Any, kwargs: Any, number: int) -> Any:
    """Frameworks name it variously, and none has another one that could be meant by its place."""
    return args[number] if len(args) > number else next(iter(kwargs.values()), None)


def _path_of(target: Any) -> Any:
    name = target if isinstance(target, (str, os.PathLike)) else getattr(target, "name", None)
    return os.path.realpath(name) if isinstance(name, (str, os.PathLike)) else None


def _read(path: str) -> List[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return [str(one) for one in json.load(file)]
    except (OSError, ValueError):
        return []


def _write(path: str, names: List[str]) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(names, file)
    os.replace(temporary, path)
