"""Files that a script begins anew when it is started again: `open("log.csv", "w")` before its loop empties what the earlier
attempts wrote. When the state is put back, so is that.

Only in a process that goes on, and only until it has. What the script has written anew must be how the earlier content begins
(a header), or the file must still be open (a log): then it goes on behind. Anything else is left as the script made it.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import stat
import weakref
from typing import Any, Callable, Dict, List

from ..never_raise import guarded
from ..user_errors import passing

LARGEST_BYTES = 64 << 20  # of all together


class ReopenedFiles:
    def __init__(self) -> None:
        self._before: Dict[str, bytes] = {}
        self._handles: Dict[str, List[Callable[[], Any]]] = {}
        self._bytes = 0
        self._open: Any = None

    def install(self) -> None:
        self._open = builtins.open
        builtins.open = io.open = self._following(self._open)

    def remove(self) -> None:
        if self._open is not None:
            builtins.open = io.open = self._open
            self._open = None
        self._before, self._handles = {}, {}

    def _following(self, inner: Any) -> Any:
        note, keep = guarded(self._note), guarded(self._keep)

        @functools.wraps(inner)
        def following(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
            empties = isinstance(mode, str) and "w" in mode and isinstance(file, (str, bytes, os.PathLike))
            path = keep(file) if empties else None
            with passing:
                opened = inner(file, mode, *args, **kwargs)
            if path is not None:
                note(path, opened)
            return opened

        return following

    def _keep(self, file: Any) -> Any:
        """Its path, where there is something to keep."""
        path = os.path.realpath(os.fsdecode(file))
        if path in self._before:
            return path
        try:
            found = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode) or not found.st_size or self._bytes + found.st_size > LARGEST_BYTES:
            return None
        self._before[path] = _content(path)
        self._bytes += found.st_size
        return path

    def _note(self, path: str, opened: Any) -> None:
        self._handles.setdefault(path, []).append(weakref.ref(opened))

    def put_back(self) -> None:
        """Their names are needed no more then."""
        put = guarded(self._put)
        for path, before in self._before.items():
            put(path, before)
        self.remove()

    def _put(self, path: str, before: bytes) -> None:
        handles = [one() for one in self._handles.get(path, ())]
        still_open = [one for one in handles if one is not None and not one.closed]
        for handle in still_open:
            handle.flush()
        after = _content(path)
        if not before.startswith(after):
            if not still_open:
                return
            before += after
        with open(path, "r+b") as file:
            file.write(before)
        for handle in still_open:
            handle.seek(0, os.SEEK_END)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
