"""What is measured, told line by line in a file beside the channel: what is there stays, however the process ends."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict, List

FILE = "plan.jsonl"
DONE = "done"


class Notes:
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._pid = os.getpid()

    def tell(self, kind: str, **data: Any) -> None:
        if os.getpid() == self._pid:  # a forked worker does not train
            os.write(self._fd, (json.dumps({"kind": kind, "at": time.time(), **data}) + "\n").encode())

    def finish(self, **data: Any) -> None:
        """The script goes no further: no handlers of its own at exit, which might save what was never trained."""
        self.tell(DONE, **data)
        _end(0)

    def failed(self, place: str, reason: str) -> None:
        """Of ours: there is nothing to plan with, and the script is not to train for nothing."""
        self.tell("failed", place=place, reason=reason)
        _end(1)


class Kept(Notes):
    """In memory, for a call that measures in the caller's own process: nothing ends with it."""

    def __init__(self) -> None:
        self.lines: List[Dict[str, Any]] = []
        self.is_done = False

    def tell(self, kind: str, **data: Any) -> None:
        self.lines.append({"kind": kind, **data})

    def finish(self, **_data: Any) -> None:
        self.is_done = True


def _end(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "flush"):
            stream.flush()
    os._exit(code)


def wanted(settings: Dict[str, Any]) -> Dict[str, Any]:
    """What the planner asked for; empty in a run."""
    found = settings.get("plan")
    return found if isinstance(found, dict) else {}
