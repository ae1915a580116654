"""The screen as a picture, for documents and tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from holdfast.views.top.app import Run, TopApp

PATIENCE_S = 60.0  # for the verdict


def svg(
    run: Run, columns: int = 120, rows: int = 34, title: str = "holdfast top", clock: Callable[[], float] = time.time
) -> str:
    """`clock`: the time to show it at; for a run that was recorded in the past as one that goes on."""

    async def taken() -> str:
        app = TopApp(run, clock=clock)
        until = time.monotonic() + PATIENCE_S
        async with app.run_test(size=(columns, rows)) as pilot:
            while not app.is_shown and time.monotonic() < until:
                await pilot.pause(0.02)
            await pilot.pause()
            return app.export_screenshot(title=title)

    return asyncio.run(taken())
