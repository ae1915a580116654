"""How many micro-batches (k) earlier runs of a script needed on this machine, so that the next one starts with that k.

Kept in `learned.json` of the state directory. Other arguments, another budget or other devices make another entry.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.masking import masked_command
from holdfast.recorded_events import MicroBatches
from holdfast.supervisor.budget import container_limit
from holdfast.supervisor.run_spec import RunSpec
from holdfast.vocabulary import Event

FILE = "learned.json"
ENTRIES = 200  # the oldest are dropped


def recall(spec: RunSpec) -> int | None:
    """The k to start with; None where none is known."""
    entries = _read(spec)
    entry = entries.get(_key(spec)) if entries else None
    k = entry.get("k") if isinstance(entry, dict) else None
    return k if isinstance(k, int) and k > 1 else None


def newest(events: Iterable[Event]) -> int | None:
    """The last k of training among these events; None where there is none."""
    taken = [MicroBatches.of(event) for event in events if event.kind == MicroBatches.KIND]
    return next((one.k for one in reversed(taken) if one.where == "train"), None)


def remember(spec: RunSpec, k: int, model: str = "") -> None:
    """Stores k. k = 1 is stored too: then there is enough memory again."""
    path = _path(spec)
    if path is None:
        return
    entries = _read(spec)
    entries.pop(_key(spec), None)
    entries[_key(spec)] = {"k": k, "model": model, "command": masked_command(spec.command[:20])}
    kept = dict(list(entries.items())[-ENTRIES:])
    new = path.with_name(f"{FILE}.{os.getpid()}")
    with contextlib.suppress(OSError):
        new.write_text(json.dumps(kept, indent=1))
        new.replace(path)


def _path(spec: RunSpec) -> Path | None:
    """<state>/runs/<run> is a run's directory."""
    return None if spec.directory is None else spec.directory.parent.parent / FILE


def _read(spec: RunSpec) -> dict[str, Any]:
    path = _path(spec)
    try:
        found = json.loads(path.read_text()) if path is not None else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(spec: RunSpec) -> str:
    """Script and arguments, where it runs, what it may take, and the machine with its devices."""
    what = [
        list(spec.command), str(spec.cwd), spec.memory_bytes or container_limit(), spec.gpu_memory_bytes,
        os.uname().nodename, os.environ.get("CUDA_VISIBLE_DEVICES", ""), _source(spec),
    ]  # fmt: skip
    return _digest(json.dumps(what).encode())


def _digest(data: bytes) -> str:
    import hashlib  # noqa: PLC0415 - 4 MiB, for scripts that ran out of memory

    return hashlib.sha256(data).hexdigest()[:24]


def _source(spec: RunSpec) -> str:
    """Digest of the script's source: an edited script may have another model."""
    for word in spec.command[1:]:
        if word.endswith(".py"):
            with contextlib.suppress(OSError):
                return _digest((spec.cwd / word).read_bytes())
    return ""
