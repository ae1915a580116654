"""What may take its time is done beside the screen: reading the journal, judging the run, asking its watcher.

In daemon threads: whoever quits does not wait for an answer, a slow file system or a long diagnosis.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from holdfast.control_socket import NoControl, Refused
from holdfast.journal import NewerJournal
from holdfast.views.overview import Overview, RunReader
from holdfast.views.timeline import Moment
from holdfast.views.top.panels import Verdict

REFRESH_S = 1.0
JUDGED_AGAIN_S = 30.0  # at the least, while nothing new has happened
JUDGED_SHARE = 0.03  # of the time, at most: judging a day's record takes seconds

Told = Callable[[Overview, list[Moment]], object]


class Reading(threading.Thread):
    """Looks at the journal once a second."""

    def __init__(self, reader: RunReader, told: Told, failed: Callable[[str], object], refresh_s: float) -> None:
        super().__init__(daemon=True, name="reading")
        self._reader = reader
        self._told = told
        self._failed = failed
        self._refresh_s = refresh_s
        self._over = threading.Event()

    def run(self) -> None:
        while True:
            try:
                found = self._reader.read()
            except (NewerJournal, OSError) as error:
                self._failed(str(error))
                return
            self._told(found, self._reader.moments())
            if self._over.wait(self._refresh_s):
                return

    def stop(self) -> None:
        self._over.set()


class Judging(threading.Thread):
    """Asks for the verdict when something has happened, and now and then while it goes on."""

    def __init__(self, judge: Callable[[], Verdict], told: Callable[[Verdict], object]) -> None:
        super().__init__(daemon=True, name="judging")
        self._judge = judge
        self._told = told
        self._wanted = threading.Event()
        self._over = False
        self._knew: tuple[object, ...] | None = None
        self._due = 0.0  # by the clock that is never set back
        self._rest_until = 0.0

    def consider(self, found: Overview, moments: Sequence[Moment]) -> None:
        """Called with every reading. What happens while a verdict is made is asked about right after it."""
        now = time.monotonic()
        told = [moment for moment in moments if moment.weight != "note"]
        knows = (found.outcome, found.until, found.attempt, len(told), told[-1].at if told else None)
        if now < self._rest_until or (knows == self._knew and (not found.is_live or now < self._due)):
            return
        self._knew, self._due = knows, float("inf")
        self._wanted.set()

    def run(self) -> None:
        while self._wanted.wait() and not self._over:
            self._wanted.clear()
            began = time.monotonic()
            verdict = self._judge()
            took_s = time.monotonic() - began
            self._rest_until = time.monotonic() + 5 * took_s
            self._due = time.monotonic() + max(JUDGED_AGAIN_S, took_s / JUDGED_SHARE)
            self._told(verdict)

    def stop(self) -> None:
        self._over = True
        self._wanted.set()


def ask_beside(ask: Callable[[], str], answered: Callable[[str, bool], object]) -> None:
    """`answered` is called with the answer, or with why there is none."""

    def wait() -> None:
        try:
            answered(ask(), True)
        except (NoControl, Refused) as error:
            answered(str(error), False)

    threading.Thread(target=wait, daemon=True, name="asking").start()
