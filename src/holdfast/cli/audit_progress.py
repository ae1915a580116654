"""A line on standard error while an audit reads: how far, how fast, how long yet. Only at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Watching = Callable[[Path, int, int], None]


@contextmanager
def progress(sizes: dict[Path, int]) -> Iterator[Watching | None]:
    if not sys.stderr.isatty() or sum(sizes.values()) < 32 << 20:
        yield None  # it takes no second
        return
    from rich.console import Console  # noqa: PLC0415 - comes with textual
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=sum(sizes.values()))
        before = 0
        current: Path | None = None
        shown = 0.0

        def watching(path: Path, done: int, size: int) -> None:
            """Bytes of the format itself may be more than those on disk: shares of the file are shown."""
            nonlocal before, current, shown
            if path != current:
                before += sizes.get(current, 0) if current is not None else 0
                current = path
            if time.monotonic() - shown > 0.1 or done >= size:
                shown = time.monotonic()
                share = done / max(1, size)
                bar.update(task, description=path.name[-40:], completed=before + share * sizes.get(path, 0))

        yield watching
