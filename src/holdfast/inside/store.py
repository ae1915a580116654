"""Checkpoints on disk: a directory each, which appears by rename when everything in it is written."""

from __future__ import annotations

import json
import os
from typing import Any, Optional

MANIFEST = "manifest.json"


def newest(directory: str) -> Optional[dict[str, Any]]:
    """The manifest of the newest valid checkpoint, with its "path"; None where there is none."""
    try:
        names = sorted((name for name in os.listdir(directory) if name.isdigit()), reverse=True)
    except OSError:
        return None
    for name in names:
        path = os.path.join(directory, name)
        try:
            with open(os.path.join(path, MANIFEST), encoding="utf-8") as file:
                manifest = json.load(file)
        except (OSError, ValueError):
            continue
        if isinstance(manifest, dict):
            return {**manifest, "path": path, "number": int(name)}
    return None
