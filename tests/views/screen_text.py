"""What a person sees of a Textual screen, as lines: read off the picture that it exports."""

from __future__ import annotations

import html
import re
from typing import Any

TEXT = re.compile(r'<text class="[^"]*"\s+x="([\d.]+)"\s+y="([\d.]+)"[^>]*>(.*?)</text>', re.DOTALL)
CELL = 12.2  # the width of a character in the picture


def lines(svg: str) -> list[str]:
    rows: dict[float, dict[int, str]] = {}
    for x, y, text in TEXT.findall(svg):
        rows.setdefault(float(y), {})[round(float(x) / CELL)] = html.unescape(text).replace("\xa0", " ")
    found = []
    for _, pieces in sorted(rows.items()):
        line = ""
        for column, text in sorted(pieces.items()):
            line = line.ljust(column) + text
        found.append(line.rstrip())
    return found


def shown(app: Any) -> str:
    return "\n".join(lines(app.export_screenshot()))
