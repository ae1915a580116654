"""A run, or a log, as one file to send to a colleague: it opens from disk, without a network, and its verdict without scripts."""

from __future__ import annotations

import base64
import gzip
import json
import secrets
from collections.abc import Sequence

from holdfast.views.web.assets import read_static
from holdfast.views.web.course import POINTS
from holdfast.views.web.document import RunDocument
from holdfast.views.web.markup import Markup, join, tag, verbatim
from holdfast.views.web.pages import SCRIPTS, chart_section, page, section, top
from holdfast.views.web.sections import shown, verdict
from holdfast.views.web.viewer import Recording, run_sections, verdict_section
from holdfast.views.why_text import verdict_line
from holdfast.vocabulary import Diagnosis

ALL_POINTS = 190_000  # of all signals together: 2 MB in the file, beside 2 MB of plotly.js
LEAST_POINTS = 60
TITLES = {
    "timeline": "What happened",
    "output": "Last output",
    "stacks": "Stacks",
    "processes": "Processes",
    "machine": "Machine and versions",
}
WITHOUT_SCRIPTS = "The charts need JavaScript; everything else is here."
LOG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def run_report(document: RunDocument, recording: Recording) -> str:
    """`document` is read already."""
    nonce = secrets.token_urlsafe(18)
    parts = run_sections(document)
    body = [
        top(document.run.name, link=False),
        tag(
            "main",
            tag("section", verdict_section(document, recording), id="verdict"),
            tag("div", parts["figures"], id="figures"),
            chart_section(),
            tag("noscript", tag("p", WITHOUT_SCRIPTS, class_="remark")),
            *(section(name, title, parts[name]) for name, title in TITLES.items()),
            id="content",
        ),
        _data("plotly-packed", read_static("plotly.min.js")),
        _data("document-packed", json.dumps(document.whole(_points(document)), allow_nan=False).encode()),
        *(tag("script", verbatim(read_static(name).decode()), nonce=nonce) for name in SCRIPTS),
    ]
    scripts = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return page(f"Why: {shown(verdict_line(recording.diagnosis))}", join(body), head(scripts), page="report")


def log_report(name: str, about: Sequence[tuple[str, str]], diagnosis: Diagnosis, said: Sequence[str]) -> str:
    """Of a log from elsewhere: verdict and evidence."""
    rows = [("of", name), *about]
    body = [
        top(name, link=False),
        tag("main", tag("section", verdict(diagnosis, rows, said), id="verdict"), id="content"),
    ]
    return page(f"Why: {shown(verdict_line(diagnosis))}", join(body), head(LOG_POLICY))


def _points(document: RunDocument) -> int:
    signals = sum(document.courses.has(name) for name in document.courses.of)
    return max(LEAST_POINTS, min(POINTS, ALL_POINTS // max(1, signals)))


def head(policy: str) -> list[Markup]:
    return [
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="referrer", content="no-referrer"),
        tag("style", verbatim(read_static("page.css").decode())),
    ]


def _data(id: str, content: bytes) -> Markup:
    """No script: a type that no browser runs. Level 5 is nearly as small as 9, in a sixth of the time."""
    packed = base64.b64encode(gzip.compress(content, 5, mtime=0)).decode()
    return tag("script", verbatim(packed), type="application/octet-stream", id=id)
