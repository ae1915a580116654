"""Prints the figures we publish: `python -m bench`, or `python -m bench.NAME` for one of them."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

from bench import overhead, passthrough, startup, weight

print(
    f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.release()}, Python {platform.python_version()}, {os.cpu_count()} cores"
)
for figure in (startup, weight, passthrough, overhead):
    figure.main()
