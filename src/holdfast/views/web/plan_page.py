"""A plan as one file to send to a colleague: the same words as in the terminal, in the report's look, without scripts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from holdfast.masking import masked_command
from holdfast.planning.plan import Plan
from holdfast.views.plan_text import sections, verdict_line
from holdfast.views.web.markup import join, tag
from holdfast.views.web.pages import page, top
from holdfast.views.web.report import LOG_POLICY, head
from holdfast.views.web.sections import shown

WIDTH = 110


def plan_page(plan: Plan, command: Sequence[str], notes: Sequence[str] = ()) -> str:
    line = verdict_line(plan)
    outcome = tag("p", "fits" if plan.fits else "does not fit", class_=f"outcome {'done' if plan.fits else 'bad'}")
    parts = [outcome, tag("h1", line), tag("p", shown(shlex.join(masked_command(command))), class_="quiet")]
    for title, text in sections(plan, WIDTH):
        parts += [tag("h2", title), tag("pre", shown(text), tabindex="0")]
    parts += [tag("p", shown(note), class_="remark") for note in notes]
    body = [top("plan", link=False), tag("main", tag("section", *parts, id="plan"), id="content")]
    return page(f"Plan: {line}", join(body), head(LOG_POLICY))
