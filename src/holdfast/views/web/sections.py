"""The parts of a run's page and report as HTML. Everything that a run told passes `shown`: secrets are masked in it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any

from holdfast.masking import masked_output
from holdfast.recorded_events import Exit
from holdfast.stack_snapshots import RecordedStacks
from holdfast.views.overview import Process, processes_in_order
from holdfast.views.rank_rows import RankRow
from holdfast.views.stacks_text import as_text as stacks_as_text
from holdfast.views.timeline import Moment
from holdfast.views.web.document import RunDocument
from holdfast.views.web.markup import Markup, join, tag
from holdfast.views.why_text import verdict_line
from holdfast.vocabulary import Cause, Diagnosis, Event, Evidence

GOOD = ("completed", "recovered", "running")
MOST_MOMENTS, MOST_PROCESSES = 300, 200
MARKS = {"note": "·", "warn": "!", "bad": "✕", "done": "✓"}
WORDS = {"note": "note", "warn": "warning", "bad": "failure", "done": "done"}


def shown(text: str) -> str:
    return masked_output(text)


# -- the verdict


def verdict(diagnosis: Diagnosis, about: Sequence[tuple[str, str]] = (), said: Sequence[str] = ()) -> Markup:
    """`said`: its last words, shown where no cause is known."""
    cause = diagnosis.cause
    parts: list[str] = [
        tag("p", diagnosis.outcome, class_=f"outcome {mood(diagnosis.outcome)}"),
        tag("h1", shown(verdict_line(diagnosis))),
    ]
    if cause is not None:
        parts += [tag("p", shown(cause.meaning), class_="meaning"), tag("p", how_sure(cause), class_="quiet")]
    parts += [facts(about)]
    if cause is not None:
        parts += [_of(cause, "h2")]
    elif said and diagnosis.outcome not in GOOD:
        parts += [tag("h2", "Its last words"), tag("pre", shown("\n".join(said)), tabindex="0")]
    for found in diagnosis.noticed:
        parts += [
            tag("h2", f"Noticed: {shown(found.title)}"),
            tag("p", how_sure(found), class_="quiet"),
            _of(found, "h3"),
        ]
    if diagnosis.also:
        others = (tag("li", f"{shown(one.title)} ({one.id}, {one.confidence:.0%})") for one in diagnosis.also)
        parts += [tag("h2", "Also considered" if cause else "Perhaps"), tag("ul", *others)]
    return join(parts)


def mood(outcome: str) -> str:
    return "done" if outcome in ("completed", "recovered") else "live" if outcome == "running" else "bad"


def how_sure(cause: Cause) -> str:
    return f"{cause.id}, {cause.level} ({cause.confidence:.0%})"


def _of(cause: Cause, heading: str) -> Markup:
    """Beside each other where there is room, so that the charts are not far below."""
    sides = []
    if cause.evidence:
        sides.append(
            tag("div", tag(heading, "Evidence"), tag("ul", *map(_evidence, cause.evidence), class_="evidence"))
        )
    if cause.remedies:
        steps = (
            part
            for remedy in cause.remedies
            for part in (tag("p", shown(remedy.title)), tag("pre", shown(remedy.how), tabindex="0"))
        )
        sides.append(tag("div", tag(heading, "What to do"), *steps))
    return tag("div", *sides, class_="sides")


def _evidence(item: Evidence) -> Markup:
    return tag("li", *([moment_link(item.at), " "] if item.at is not None else []), shown(item.text))


def moment_link(at: float) -> Markup:
    """Leads to that moment in the charts, where there are any: charts.js takes it from data-at."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(at))
    return tag("a", tag("time", clock(at), datetime=stamp), href="#charts", data_at=f"{at:.3f}", class_="moment")


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


# -- what happened


def happened(moments: Sequence[Moment]) -> Markup:
    if not moments:
        return tag("p", "Nothing yet.", class_="quiet")
    left_out = len(moments) - MOST_MOMENTS
    note = (
        [tag("p", f"{left_out} earlier ones are left out; `holdfast log` has them.", class_="quiet")]
        if left_out > 0
        else []
    )
    return join([*note, tag("ol", *map(_moment, moments[-MOST_MOMENTS:]), class_="timeline")])


def _moment(moment: Moment) -> Markup:
    times = f" ({moment.times} times)" if moment.times > 1 else ""
    mark = tag("span", MARKS[moment.weight], class_="mark", title=WORDS[moment.weight])
    return tag("li", moment_link(moment.at), mark, tag("span", shown(moment.text) + times), class_=moment.weight)


# -- how it stands


def figures(document: RunDocument) -> Markup:
    found = [(name, value) for name, value in _figures(document) if value]
    cells = (tag("div", tag("dt", name), tag("dd", value)) for name, value in found)
    return tag("dl", *cells, class_="figures")


def _figures(document: RunDocument) -> Iterator[tuple[str, str]]:
    step, epoch = document.last("train.steps_count"), document.last("train.epoch_count")
    yield "step", f"{step:,.0f}".replace(",", " ") if step is not None else ""
    yield "epoch", f"{epoch:.0f}" if epoch is not None else ""
    for name, signal in (("loss", "train.loss"), ("gradient norm", "train.gradient_norm")):
        value = document.last(signal)
        yield name, f"{value:.4g}" if value is not None else ""
    yield "a step takes", seconds(document.last("train.step_s"))
    waiting = document.last("train.wait_ratio")
    yield "of it waiting", f"{waiting:.0%}" if waiting is not None else ""
    yield "memory of the job, at most", size(document.highest("job.rss_bytes"))
    yield "ran for", seconds((document.last_at or document.origin) - document.origin)


def seconds(value: float | None) -> str:
    if value is None or not isfinite(value):
        return ""
    if value < 1:
        return f"{value * 1000:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def size(value: float | None) -> str:
    if value is None or not isfinite(value):
        return ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


# -- ranks


def ranks(rows: Sequence[RankRow]) -> list[Markup]:
    """None for a process that trains alone."""
    if not rows:
        return []
    titles = ("rank", "host", "steps", "step", "own part of it", "waiting for data", "ended")
    head = tag("tr", *(tag("th", title, scope="col") for title in titles))
    body = (
        tag("tr", *(tag("td", shown(text)) for text in _rank(one)), class_="first" if one.was_first else None)
        for one in rows
    )
    return [tag("h2", "Ranks"), tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="ranks")]


def _rank(one: RankRow) -> tuple[str, ...]:
    waits = f"{one.wait_ratio:.0%}" if one.wait_ratio is not None else ""
    ended = f"{clock(one.ended_at)} {one.ended}" if one.ended_at is not None else "is running"
    steps = "" if one.steps is None else str(one.steps)
    return str(one.rank), one.host, steps, seconds(one.step_s), seconds(one.own_s), waits, ended


# -- output, stacks, processes, machine


def output(document: RunDocument) -> Markup:
    parts = [
        part for stream, said in document.printed.streams() for part in (tag("h3", stream), _printed(stream, said))
    ]
    return join(parts) if parts else tag("p", "It has printed nothing.", class_="quiet")


def _printed(stream: str, said: str) -> Markup:
    return tag("pre", said, class_="output", tabindex="0", aria_label=f"the end of {stream}")


def stacks(taken: Sequence[RecordedStacks], run: str) -> Markup:
    return join(
        tag(
            "details",
            tag("summary", f"{clock(one.snapshot.at)}, after {one.silent_s:.0f} s in which nothing moved"),
            tag("pre", shown(stacks_as_text(run, one.snapshot, [], colour=False)), tabindex="0"),
        )
        for one in reversed(taken)
    )


def processes(events: Iterable[Event]) -> Markup:
    """All that were seen, those that have gone marked."""
    seen: dict[int, Process] = {}
    gone: set[int] = set()
    for event in events:
        pid = int(event.data.get("pid", 0))
        if event.kind == "process.appeared":
            name = str(event.data.get("name", "?"))
            seen[pid] = Process(pid, int(event.data.get("parent", 0)), name, str(event.data.get("command") or name))
            gone.discard(pid)
        elif event.kind == "process.gone":
            gone.add(pid)
    rows = [
        tag("li", tag("code", f"{'  ' * depth}{one.pid}"), " ", shown(one.command)[:300], " (ended)" if one.pid in gone else "",
            class_="gone" if one.pid in gone else None)
        for depth, one in processes_in_order(seen.values())[:MOST_PROCESSES]
    ]  # fmt: skip
    return tag("ul", *rows, class_="processes") if rows else tag("p", "None were recorded.", class_="quiet")


def facts(rows: Sequence[tuple[str, str]]) -> Markup:
    return tag(
        "dl", *(part for key, value in rows for part in (tag("dt", key), tag("dd", shown(value)))), class_="facts"
    )


def about(document: RunDocument) -> list[tuple[str, str]]:
    start, end = document.start, document.exit
    rows = [("run", document.run.name), ("command", document.command or "?")]
    if start is not None:
        rows += [("started", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(start.at)))]
    if start is not None and end is not None:
        exit = Exit.of(end)
        rows += [("ended", f"after {seconds(end.at - start.at)}, exit code {exit.code}")]
    if start is not None and start.data.get("resumed_from"):
        rows += [("resumed from", str(start.data["resumed_from"]))]
    return rows


def machine(document: RunDocument) -> list[tuple[str, str]]:
    """The machine and the versions."""
    rows: dict[str, str] = {}
    start = document.start
    for event in document.events("machine"):
        data = event.data
        rows["machine"] = f"{data.get('hostname', '?')}, {data.get('cores', '?')} cores"
        rows["system"] = f"{data.get('system', '')} {data.get('kernel', '')}"
    if (total := document.last("host.memory_total_bytes")) is not None:
        rows["memory"] = size(total)
    for event in document.events("gpu.found"):
        rows[f"GPU {event.data.get('index', '?')}"] = _gpu(event.data)
    for event in document.events("inside.hello"):
        rows["Python"] = str(event.data.get("python", "?"))
    for event in document.events("framework.loaded"):
        rows[str(event.data.get("name", "?"))] = str(event.data.get("version", "?"))
    if start is not None:
        rows["Holdfast"] = f"{start.data.get('holdfast', '?')}, policy {start.data.get('policy', '?')}"
        rows["directory"] = str(start.data.get("cwd", "?"))
        if start.data.get("options"):
            rows["options"] = " ".join(map(str, start.data["options"]))
    return list(rows.items())


def _gpu(data: Any) -> str:
    total = size(data.get("memory_total_bytes")) if data.get("memory_total_bytes") else ""
    return ", ".join(filter(None, (str(data.get("name") or "?"), total, f"driver {data.get('driver', '?')}")))
