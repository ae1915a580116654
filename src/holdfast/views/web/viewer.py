"""What the pages are made of, kept between two requests: the documents of the runs looked at, and their verdicts."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from holdfast.views.rank_rows import rank_rows
from holdfast.views.resuming import resume_command
from holdfast.views.web import listing, sections
from holdfast.views.web.differences import differences
from holdfast.views.web.document import RunDocument
from holdfast.views.web.markup import Markup, join, tag
from holdfast.views.web.pages import differences_table
from holdfast.views.why_text import last_words, not_working, verdict_line
from holdfast.vocabulary import Diagnosis, Event, Window

KEPT_DOCUMENTS = 8
KEPT_VERDICTS = 500
AGAIN_S = 5.0  # a run that goes on is judged anew after so long at the earliest,
AGAIN_TIMES = 5  # and after so many times as long as it took


class NoSuchRun(LookupError):
    """None of the runs there are is called so."""


class Unreadable(Exception):
    """A record that this Holdfast cannot read, and why."""


class Recording(Protocol):
    """What `cli.recording.read_run` gives."""

    @property
    def window(self) -> Window: ...
    @property
    def diagnosis(self) -> Diagnosis: ...
    @property
    def damage(self) -> list[str]: ...


@dataclass
class Watched:
    document: RunDocument
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Judged:
    lock: threading.Lock = field(default_factory=threading.Lock)
    recording: Recording | None = None
    of: tuple[tuple[str, int], ...] = ()
    at: float = float("-inf")
    took_s: float = 0.0


class Viewer:
    def __init__(
        self,
        runs: Callable[[], Sequence[Path]],
        read: Callable[[Path], Recording],
        alive: Callable[[Sequence[Event]], bool],
    ) -> None:
        self._runs, self._read, self._alive = runs, read, alive
        self._documents: OrderedDict[str, Watched] = OrderedDict()
        self._verdicts: OrderedDict[str, Judged] = OrderedDict()
        self._lock = threading.Lock()

    def rows(self) -> list[dict[str, Any]]:
        found = listing.rows(self._runs(), self._alive)
        if found:
            self.prepare(str(found[0]["run"]))  # the likeliest to be looked at next
        return found

    def find(self, name: str) -> Path:
        """By its whole name, out of those there are: what a request names is never a path."""
        for run in self._runs():
            if run.name == name:
                return run
        raise NoSuchRun(name)

    # -- one run

    def prepare(self, name: str) -> Path:
        """Its record is read while the browser loads the page, since that takes as long."""
        run, watched = self.find(name), self._watched(name)
        threading.Thread(target=_update, args=(watched,), daemon=True).start()
        return run

    def whole(self, name: str) -> dict[str, Any]:
        watched = self._watched(name)
        with watched.lock:
            watched.document.update()
            return {**watched.document.whole(more=False), **self._beside(watched.document)}

    def signals(self, name: str, chart: str) -> dict[str, Any]:
        watched = self._watched(name)
        with watched.lock:
            document = watched.document
            lines = [line["signal"] for one in document.charts() if one["id"] == chart for line in one["lines"]]
            return {"signals": document.signals(lines)}

    def since(self, name: str, version: int) -> dict[str, Any]:
        watched = self._watched(name)
        with watched.lock:
            watched.document.update()
            new = watched.document.since(version)
            return {"reset": True} if new is None else {**new, **self._beside(watched.document)}

    def _beside(self, document: RunDocument) -> dict[str, Any]:
        live = document.exit is None and self._alive(document.starts)
        return {"live": live, "sections": {name: str(part) for name, part in run_sections(document).items()}}

    def verdict(self, name: str) -> Markup:
        recording = self._judged(name)
        watched = self._watched(name)
        with watched.lock:
            watched.document.update()
            return verdict_section(watched.document, recording)

    def line(self, name: str) -> dict[str, str]:
        diagnosis = self._judged(name).diagnosis
        text = "" if diagnosis.outcome == "completed" and not diagnosis.noticed else verdict_line(diagnosis)
        if diagnosis.noticed and diagnosis.cause is None:
            text = f"Noticed: {'; '.join(cause.title for cause in diagnosis.noticed)}"
        return {"outcome": diagnosis.outcome, "mood": sections.mood(diagnosis.outcome), "text": sections.shown(text)}

    def differences(self, first: str, second: str) -> Markup:
        verdicts = (self._judged(first).diagnosis, self._judged(second).diagnosis)
        documents = []
        for name in (first, second):
            watched = self._watched(name)
            with watched.lock:
                watched.document.update()
            documents.append(watched.document)
        return differences_table(differences(documents[0], documents[1], verdicts), first, second)

    # -- what is kept

    def _watched(self, name: str) -> Watched:
        run = self.find(name)
        with self._lock:
            watched = self._documents.setdefault(name, Watched(RunDocument(run)))
            self._documents.move_to_end(name)
            while len(self._documents) > KEPT_DOCUMENTS:
                self._documents.popitem(last=False)
            return watched

    def _judged(self, name: str) -> Recording:
        run = self.find(name)
        with self._lock:
            judged = self._verdicts.setdefault(name, Judged())
            while len(self._verdicts) > KEPT_VERDICTS:
                self._verdicts.popitem(last=False)
            drawn = self._documents.get(name)
        with drawn.lock if drawn is not None else nullcontext():
            pass  # what is being read for the charts comes first: both at once take twice as long
        with judged.lock:
            now, of = time.monotonic(), _sizes(run)
            fresh = judged.of == of or now - judged.at < max(AGAIN_S, AGAIN_TIMES * judged.took_s)
            if judged.recording is None or not fresh or (judged.of != of and _is_over(run)):
                judged.recording = self._read(run)
                judged.of, judged.at, judged.took_s = of, now, time.monotonic() - now
            return judged.recording


def _update(watched: Watched) -> None:
    with watched.lock, suppress(OSError):  # told where it is asked for
        watched.document.update()


def run_sections(document: RunDocument) -> dict[str, Markup]:
    """Of the page and of the report, by their places."""
    taken = sections.stacks(document.stacks, document.run.name)
    return {
        "figures": sections.figures(document),
        "timeline": sections.happened(document.moments),
        "output": sections.output(document),
        "stacks": taken or tag("p", "None were taken: nothing stood still.", class_="quiet"),
        "processes": sections.processes(document.events("process.appeared", "process.gone")),
        "machine": sections.facts(sections.machine(document)),
    }


def verdict_section(document: RunDocument, recording: Recording) -> Markup:
    window, diagnosis = recording.window, recording.diagnosis
    parts = [sections.verdict(diagnosis, sections.about(document), last_words(window))]
    parts += sections.ranks(rank_rows(window))
    if command := resume_command(document.run.name, window, diagnosis):
        parts += [tag("h2", "To go on"), tag("pre", sections.shown(command), tabindex="0")]
    parts += [tag("p", sections.shown(text), class_="remark") for text in (*not_working(window), *recording.damage)]
    return join(parts)


def _sizes(run: Path) -> tuple[tuple[str, int], ...]:
    with os.scandir(run / "journal") as entries:
        return tuple(sorted((entry.name, entry.stat().st_size) for entry in entries))


def _is_over(run: Path) -> bool:
    return bool(listing.row(run, lambda _: True)["outcome"] != "running")
