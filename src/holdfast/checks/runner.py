"""Runs the checks beside each other; one that does not come back is left behind in its thread, and that is its line."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from holdfast.checks.contract import Asked, Check, Here, Line


class _Running:
    def __init__(self, check: Check, here: Here) -> None:
        self._check = check
        self._here = replace(here, asked=Asked())
        self._lines: list[Line] = []
        self._thread = threading.Thread(target=self._run, name=f"holdfast-check-{check.id}", daemon=True)
        self._thread.start()

    def lines(self, until: float, patience_s: float) -> list[Line]:
        self._thread.join(max(0.0, until - time.monotonic()))
        found = list(self._lines)
        if self._thread.is_alive():
            what = self._here.asked.what or f"the check of {self._check.id}"
            text = f"{what} did not answer within {patience_s:g} s"
            found.append(Line(self._check.id, self._check.unanswered, text, self._check.fix))
        return found

    def _run(self) -> None:
        try:
            for line in self._check.look(self._here):
                self._lines.append(line)
        except Exception as error:  # noqa: BLE001 -- whatever a check does, the others' lines are told
            text = f"the check of {self._check.id} failed: {type(error).__name__}: {error}".rstrip(": ")
            self._lines.append(Line(self._check.id, "warn", text, "this is a fault of Holdfast's; please report it"))


def look_at_all(here: Here, checks: Sequence[Check], patience_s: float) -> list[Line]:
    """In the order of `checks`. Returns within `patience_s`, whatever they do."""
    until = time.monotonic() + patience_s
    running = [_Running(check, here) for check in checks]
    return [line for one in running for line in one.lines(until, patience_s)]
