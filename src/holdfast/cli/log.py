from __future__ import annotations

import argparse
import heapq
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.recording import any_alive
from holdfast.cli.run_store import find_run
from holdfast.journal import Follower, Journal, NewerJournal
from holdfast.views.log_text import as_json_line, as_line
from holdfast.vocabulary import Event, Output, Sample

LOOK_S = 0.25  # between two looks at a live journal
SLACK_S = 5.0  # a record may be written up to a tick, a late probe's answer some seconds, after its own time
HELD_BACK = 20_000  # records in memory while they are sorted
DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
SECONDS_IN = {"s": 1, "m": 60, "h": 3600, "d": 86400}
TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
NONE = "none"


class LogVerb:
    """Prints what was recorded of a run, a dated line each: decisions, events and, where asked for, samples.

    holdfast log                              the latest run
    holdfast log --follow                     one that is going, until it ends
    holdfast log baseline --since 10m         the last ten minutes of its record
    holdfast log --samples 'train.*' --json   with these series, for programs
    holdfast log --events 'rescue.*,decision' --tail 20

    #2 is the second attempt of a run that was started again. A name may hold * and ?, and several are separated by
    commas. Exits 0, or 2 on misuse; 130 when it was interrupted.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", nargs="?", metavar="RUN", help="a run's id or name (default: the latest)")
        parser.add_argument("--follow", "-f", action="store_true", help="go on with what is new until the run ends")
        parser.add_argument("--json", action="store_true", help="a JSON object a line, in UTC")
        parser.add_argument(
            "--events", metavar="KIND", action="append", help=f"only events of this kind; `{NONE}`: none"
        )
        parser.add_argument("--samples", metavar="NAME", action="append", help="also the samples of this name")
        parser.add_argument(
            "--since", metavar="TIME", help="10m before the end (s, m, h, d), 14:30, or 2026-01-31T14:30"
        )
        parser.add_argument(
            "--tail", metavar="N", type=int, help="only the last N lines, and with --follow what is new"
        )
        parser.add_argument("--dir", help="where runs are kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        if options.tail is not None and options.tail < 0:
            raise UserError("--tail: give a number of lines, 0 or more")
        run = find_run(options.run, options.dir)
        try:
            return _print(run, options)
        except NewerJournal as error:
            raise UserError(str(error)) from None


def _print(run: Path, options: argparse.Namespace) -> int:
    events, samples = Patterns(options.events, everything=True), Patterns(options.samples, everything=False)
    since = _moment(options.since, run) if options.since else float("-inf")
    follower = Follower(run / "journal", names=samples)
    shown = Shown(events, since)
    write = as_json_line if options.json else as_line
    lines = (write(record, attempt) for record, attempt in shown.new_of(follower))
    for line in lines if options.tail is None else deque(lines, maxlen=options.tail):
        print(line)
    while options.follow and not shown.is_over():
        sys.stdout.flush()
        time.sleep(LOOK_S)
        for record, attempt in shown.new_of(follower):
            print(write(record, attempt))
    sys.stdout.flush()
    for line in Journal(run / "journal").damage:
        print(f"holdfast: {line}", file=sys.stderr)
    if unmatched := samples.unmatched():
        known = ", ".join(sorted(samples.seen)[:8]) or "none"
        raise UserError(f"--samples: nothing in this run is called {unmatched}; there are {known}…")
    if not shown.records:
        raise UserError(f"nothing is recorded in {run}")
    return 0


class Patterns:
    """Names that a user asked for; `in` is what the journal's reader asks of it."""

    def __init__(self, given: list[str] | None, everything: bool) -> None:
        words = [word.strip() for words in given or () for word in words.split(",")]
        self._patterns = [word for word in words if word and word != NONE]
        self._everything = everything and given is None
        self._known: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        text = str(name)
        if text not in self._known:
            self._known[text] = self._everything or any(_matches(text, pattern) for pattern in self._patterns)
        return self._known[text]

    @property
    def seen(self) -> list[str]:
        return list(self._known)

    def unmatched(self) -> str:
        """The first pattern that matched no name."""
        return next((p for p in self._patterns if not any(_matches(name, p) for name in self._known)), "")


def _matches(name: str, pattern: str) -> bool:
    """Brackets are literal: series are called `disk[/].free_bytes`."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


class Shown:
    """Of the records that come, those that were asked for, in the order of time, each with its attempt."""

    def __init__(self, kinds: Patterns, since: float) -> None:
        self._kinds = kinds
        self._since = since
        self._attempt = 1
        self._starts: list[Event] = []
        self._ended = False
        self.records = 0

    def new_of(self, follower: Follower) -> Iterator[tuple[Sample | Event, int]]:
        for record in heapq.merge(*map(in_order, follower.streams()), key=lambda record: record.at):
            self.records += 1
            if isinstance(record, Event):
                self._note(record)
                if record.kind not in self._kinds:
                    continue
            if record.at >= self._since:
                yield record, self._attempt

    def _note(self, event: Event) -> None:
        if event.kind in ("run.start", "attempt.start"):
            self._starts.append(event)
            self._attempt = int(event.data.get("attempt") or self._attempt)
        self._ended = self._ended or event.kind == "run.end"

    def is_over(self) -> bool:
        """The run has recorded its end, or none of its processes is alive."""
        return self._ended or (bool(self._starts) and not any_alive(self._starts))


def in_order(stream: Iterable[Sample | Event | Output]) -> Iterator[Sample | Event]:
    """Sorted by time within a sliding window of a few seconds, without the script's output."""
    tie = count()
    held: list[tuple[float, int, Sample | Event]] = []
    newest = float("-inf")
    for record in stream:
        if isinstance(record, Output):
            continue
        newest = max(newest, record.at)
        heapq.heappush(held, (record.at, next(tie), record))
        while held and (held[0][0] < newest - SLACK_S or len(held) > HELD_BACK):
            yield heapq.heappop(held)[2]
    while held:
        yield heapq.heappop(held)[2]


def _moment(text: str, run: Path) -> float:
    """A duration counts back from the end of the record, or from now while the run goes on."""
    events = Journal(run / "journal").events()
    starts = [event for event in events if event.kind in ("run.start", "attempt.start")]
    end = time.time() if not events or any_alive(starts) else events[-1].at
    if given := DURATION.fullmatch(text):
        return end - float(given[1]) * SECONDS_IN[given[2]]
    last = datetime.fromtimestamp(end)
    try:
        if given := TIME_OF_DAY.fullmatch(text):
            hour, minute, second = (int(part or 0) for part in given.groups())
            then = last.replace(hour=hour, minute=minute, second=second, microsecond=0)
            return (then if then <= last else then - timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise UserError(f"--since: {text!r} is no time; give 10m, 14:30 or 2026-01-31T14:30") from None
