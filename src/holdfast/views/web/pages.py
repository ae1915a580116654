"""The pages as HTML: a frame around the sections, which a page asks for and a report holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.views.web.markup import Markup, join, tag
from holdfast.views.web.sections import mood, shown

SCRIPTS = ("charts.js", "page.js")
TOOLS = (
    ("whole", "Whole run"),
    ("in", "Zoom in"),
    ("out", "Zoom out"),
    ("back", "Earlier"),
    ("on", "Later"),
    ("log", "Logarithmic loss"),
)


def page(title: str, body: Markup, head: Sequence[Markup], **data: str) -> str:
    """`data`: what the scripts read off the body."""
    meta = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
    ]
    attributes = {f"data_{name}": value for name, value in data.items()}
    whole = tag("html", tag("head", *meta, *head), tag("body", body, **attributes), lang="en")
    return f"<!doctype html>\n{whole}\n"


def served(title: str, body: Markup, kind: str, charts: bool = True, **data: str) -> str:
    head = [tag("link", rel="stylesheet", href="/static/page.css")]
    head += [tag("script", src="/static/plotly.min.js", id="plotly", async_=True)] if charts else []
    head += [tag("script", src=f"/static/{name}", defer=True) for name in SCRIPTS]
    return page(title, body, head, page=kind, **data)


def top(run: str = "", *, link: bool = True) -> Markup:
    home = tag("a", "All runs", href="/") if link else ""
    return join(
        [
            tag("a", "To the content", href="#content", class_="skip"),
            tag("header", tag("strong", "holdfast"), home, tag("span", run, class_="run"), class_="top"),
        ]
    )


def section(id: str, title: str, inner: Markup) -> Markup:
    return tag("section", tag("h2", title), tag("div", inner, id=id))


def chart_section() -> Markup:
    tools = (
        tag("button", text, type="button", data_do=act, aria_pressed="false" if act == "log" else None)
        for act, text in TOOLS
    )
    hint = "Drag to zoom, double-click for the whole run; with the keyboard: arrows, + and −, Home."
    return tag(
        "section",
        tag("h2", "Charts"),
        tag("div", *tools, class_="tools", role="group", aria_label="Charts", hidden=True),
        tag("p", hint, class_="quiet", id="hint", hidden=True),
        tag("p", id="said", role="status"),
        tag("div", id="figure", class_="figure", tabindex="0", role="group"),
        tag("details", tag("summary", "All other signals"), tag("div", id="more"), id="others", hidden=True),
        id="charts",
    )


def run_page(run: str) -> str:
    live = tag("p", "Live: what is new is shown every second.", class_="quiet", id="live", hidden=True)
    waiting = tag("p", "Reading the record…", class_="quiet")
    body = [
        top(run),
        tag(
            "main",
            tag("section", waiting, id="verdict", aria_live="polite"),
            live,
            tag("div", id="figures"),
            chart_section(),
            section("timeline", "What happened", join([])),
            section("output", "Last output", join([])),
            section("stacks", "Stacks", join([])),
            section("processes", "Processes", join([])),
            section("machine", "Machine and versions", join([])),
            id="content",
        ),
    ]
    return served(f"{run} · holdfast", join(body), "run", run=run)


def runs_page(rows: Sequence[dict[str, Any]]) -> str:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in
               ("compare", "run", "outcome", "started", "took", "command", "verdict"))))  # fmt: skip
    table = tag("table", head, tag("tbody", *map(_row, rows)), class_="runs")
    nothing = tag("p", "No runs here yet; record one with: holdfast run COMMAND")
    button = tag("button", "Compare the two chosen", type="button", id="compare", disabled=True)
    body = [
        top(link=False),
        tag("main", tag("h1", "Runs"), tag("div", button, class_="tools"), table if rows else nothing, id="content"),
    ]
    return served("Runs · holdfast", join(body), "runs", charts=False)


def _row(row: dict[str, Any]) -> Markup:
    run = str(row["run"])
    box = tag("input", type="checkbox", name="run", value=run, aria_label=f"compare {run}")
    return tag(
        "tr",
        tag("td", box),
        tag("td", tag("a", run, href=f"/run/{run}")),
        tag("td", tag("span", row["outcome"], class_=f"outcome {mood(row['outcome'])}")),
        tag("td", row["started"], class_="number started"),
        tag("td", row["took"], class_="number"),
        tag("td", shown(row["command"])[:300], class_="wide"),
        tag("td", class_="line wide"),
        data_run=run,
    )


def compare_page(first: str, second: str) -> str:
    key = [
        tag("p", tag("span", class_="sample first"), tag("a", first, href=f"/run/{first}")),
        tag("p", tag("span", class_="sample second"), tag("a", second, href=f"/run/{second}")),
    ]
    waiting = tag("p", "Reading the records…", class_="quiet")
    body = [
        top(),
        tag(
            "main",
            tag("h1", "Two runs side by side"),
            *key,
            tag("h2", "What differs"),
            tag("div", waiting, id="differences"),
            chart_section(),
            id="content",
        ),
    ]
    return served("Two runs · holdfast", join(body), "compare", a=first, b=second)


def differences_table(rows: Sequence[tuple[str, str, str]], first: str, second: str) -> Markup:
    """What differs comes first."""
    ordered = [row for row in rows if row[1] != row[2]] + [row for row in rows if row[1] == row[2]]
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in ("", first, second))))
    lines = (
        tag("tr", tag("th", name, scope="row"), tag("td", shown(a) or "–"), tag("td", shown(b) or "–"),
            class_="differs" if a != b else "same")
        for name, a, b in ordered
    )  # fmt: skip
    return tag("table", head, tag("tbody", *lines), class_="differences")


def refused_page(title: str, text: str) -> str:
    body = join([tag("main", tag("h1", title), tag("p", text))])
    return page(title, body, [tag("link", rel="stylesheet", href="/static/page.css")])
