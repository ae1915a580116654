"""What the supervisor wants of this attempt, as it left it beside the channel. Read once, when the channel is opened."""

from __future__ import annotations

import json
import os
from typing import Any

FILE = "settings.json"


def read(channel: str) -> dict[str, Any]:
    """Empty where there is none: then nothing is taken over beyond watching."""
    try:
        with open(os.path.join(channel, FILE), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def rescue_wanted(settings: dict[str, Any]) -> bool:
    """Whether running out of memory is to be survived."""
    return settings.get("policy") == "protect" and isinstance(settings.get("rescue"), dict)


def checkpoint_wanted(settings: dict[str, Any]) -> bool:
    """Whether training is to go on after it was killed."""
    return settings.get("policy") == "protect" and bool(settings.get("checkpoint"))
