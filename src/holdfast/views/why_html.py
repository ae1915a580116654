"""The verdict as one page to send to a colleague: no script, nothing loaded from elsewhere, everything escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

from holdfast.views.safe_text import safe
from holdfast.vocabulary import Cause, Diagnosis

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.1rem; margin-top: 2rem; }
pre { padding: .75rem; overflow-x: auto; border: 1px solid #8884; border-radius: .4rem; white-space: pre-wrap; }
dt { opacity: .7; } dd { margin: 0 0 .4rem; overflow-wrap: anywhere; } li { overflow-wrap: anywhere; }
.sure { opacity: .7; }
"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def as_html(name: str, about: Sequence[tuple[str, str]], diagnosis: Diagnosis, said: Sequence[str]) -> str:
    cause = diagnosis.cause
    verdict = cause.title if cause else diagnosis.summary
    rows = [("of", name), *about, ("outcome", diagnosis.outcome)]
    body = [f"<h1>{_text(verdict)}</h1>"]
    if cause:
        body += [
            f'<p>{_text(cause.meaning)}</p><p class="sure">{_text(cause.id)}, {cause.level} ({cause.confidence:.0%})</p>'
        ]
    body += ["<dl>", *(f"<dt>{_text(key)}</dt><dd>{_text(value)}</dd>" for key, value in rows), "</dl>"]
    if cause:
        body += _of(cause)
    elif said:
        body += ["<h2>Its last words</h2>", f"<pre>{_text(chr(10).join(said))}</pre>"]
    for found in diagnosis.noticed:
        how_sure = f"{found.level} ({found.confidence:.0%})"
        body += [
            f"<h2>Noticed: {_text(found.title)}</h2>",
            f'<p class="sure">{_text(found.id)}, {how_sure}</p>',
            *_of(found),
        ]
    if diagnosis.also:
        title = "Also considered" if cause else "Perhaps"
        others = (
            f"<li>{_text(other.title)} ({_text(other.id)}, {other.confidence:.0%})</li>" for other in diagnosis.also
        )
        body += [f"<h2>{title}</h2>", "<ul>", *others, "</ul>"]
    return PAGE.format(title=_text(f"Why: {verdict}"), style=STYLE, body="\n".join(body))


def _of(cause: Cause) -> list[str]:
    parts = ["<h2>Evidence</h2>", "<ul>", *(f"<li>{_text(item.text)}</li>" for item in cause.evidence), "</ul>"]
    if cause.remedies:
        parts += ["<h2>What to do</h2>"]
        parts += [f"<p>{_text(remedy.title)}</p><pre>{_text(remedy.how)}</pre>" for remedy in cause.remedies]
    return parts


def _text(text: str) -> str:
    return html.escape(safe(text), quote=True)
