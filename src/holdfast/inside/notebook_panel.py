"""Shows in IPython what a process of its own has read: a thread waits for its lines and hands them to the notebook.

Nothing is read or computed here, so training beside it costs a message a second at most.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
from importlib import import_module
from typing import Any, Optional

from .never_raise import guarded

FIRST_S = 3.0  # that a cell waits for its panel, so that the verdict of a dead kernel stands there first


class _Panel:
    def __init__(self) -> None:
        self.reader: Optional[subprocess.Popen[bytes]] = None


_panel = _Panel()


@guarded
def show(directory: str, first: bool) -> None:
    """`first`: of this kernel. A cell that is run again shows it anew."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not directory:
        return
    if _panel.reader is not None:
        _panel.reader.kill()
        _panel.reader.wait()
    isolated = ["-P"] if sys.version_info >= (3, 11) else []  # a json.py beside the notebook is not ours
    command = [sys.executable, *isolated, "-m", "holdfast", "panel", directory, *(["--first"] if first else [])]
    _panel.reader = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    shown = _InNotebook() if hasattr(shell, "kernel") else _InTerminal()
    lines = _panel.reader.stdout
    assert lines is not None
    if select.select([lines], [], [], FIRST_S)[0]:
        shown.show(_parsed(lines.readline()))
    threading.Thread(target=_follow, args=(_panel.reader, shown), daemon=True, name="holdfast-panel").start()


@guarded
def _follow(reader: subprocess.Popen[bytes], shown: Any) -> None:
    """Until the run ends, or another panel has taken its place."""
    assert reader.stdout is not None
    with reader.stdout as lines:
        for line in lines:
            shown.show(_parsed(line))
    reader.wait()


def _parsed(line: bytes) -> dict[str, str]:
    try:
        found = json.loads(line)
    except ValueError:  # it was killed in the middle of a line
        return {}
    return found if isinstance(found, dict) else {}


class _InNotebook:
    """One output that is drawn anew."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, panel: dict[str, str]) -> None:
        if not panel:
            return
        data = {"text/html": panel.get("html", ""), "text/plain": panel.get("text", "")}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


class _InTerminal:
    """Lines, where nothing can be drawn anew: all once, then only what is noticed."""

    def __init__(self) -> None:
        self._news: Optional[str] = None

    def show(self, panel: dict[str, str]) -> None:
        news = panel.get("news", "")
        if self._news is None:
            print(panel.get("text", ""))
        elif news and news != self._news:
            print(news)
        self._news = news if panel else self._news
