"""The files that a page needs: our own, and plotly.js as its Python package ships it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

PLOTLY = "plotly.min.js"
STATIC = files("holdfast.views.web") / "static"


class NotInstalled(Exception):
    """A package that the screens need is not there."""


@cache
def read_static(name: str) -> bytes:
    """KeyError where there is no such file."""
    if name == PLOTLY:
        return _plotly().read_bytes()
    return {one.name: one for one in STATIC.iterdir()}[name].read_bytes()


def _plotly() -> Path:
    """Only this file of the package is used: importing it would take as long as the rest of a report."""
    found = find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise NotInstalled("plotly is not installed, which draws the charts: pip install plotly")
    return Path(found.submodule_search_locations[0]) / "package_data" / PLOTLY
