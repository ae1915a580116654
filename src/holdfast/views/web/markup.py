"""HTML that escapes by construction: whatever is not Markup already is text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from holdfast.views.safe_text import safe

_ENDS = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)
ALONE = ("br", "input", "link", "meta")  # elements without an end


class Markup(str):
    """Made by `tag`, `join`, `text` and `verbatim` alone."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | bool | None) -> Markup:
    """`class_` is class, `data_at` is data-at; an attribute that is None or False is left out."""
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    inner = "".join(map(text, children))
    return Markup(f"<{name}{given}>" if name in ALONE else f"<{name}{given}>{inner}</{name}>")


def join(parts: Iterable[str]) -> Markup:
    return Markup("".join(map(text, parts)))


def text(child: str) -> Markup:
    return child if isinstance(child, Markup) else Markup(html.escape(safe(child), quote=True))


def verbatim(ours: str) -> Markup:
    """A style, a script or data of our own, between its tags: nothing in it may end them."""
    if _ENDS.search(ours):
        raise ValueError("this would end the element it stands in")
    return Markup(ours)


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(safe(str(value)), quote=True)}"'
