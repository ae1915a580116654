"""Files of data that a process had open while its memory rose, before its first step."""

from __future__ import annotations

import re

from holdfast.units import amount
from holdfast.vocabulary import Evidence, Window

KIND = "startup.files"
DATA_FILE = re.compile(
    r"\.(?:npy|npz|csv|tsv|jsonl?|h5|hdf5|parquet|feather|arrow|tfrecords?|pkl|pickle|mat|txt|dat|bin|zip|tar|lmdb|mdb|nc|db|sqlite)"
    r"(?:\.(?:gz|bz2|xz|zst))?$",
    re.IGNORECASE,
)
A_SHARE = 0.2  # of the memory by which the process has grown: smaller ones are not what filled it
MOST = 3


def files_read(window: Window) -> list[Evidence]:
    """The largest first. The recipes of the causes find the file in these words."""
    found: dict[str, tuple[float, float]] = {}
    for event in window.events(KIND):
        grown = float(event.data["held_bytes"]) - float(event.data.get("base_bytes") or 0.0)
        for file in event.data.get("files", ()):
            path, size = str(file["path"]), float(file["bytes"])
            if DATA_FILE.search(path) and size >= A_SHARE * grown:
                found[path] = (size, event.at)
    largest = sorted(found.items(), key=lambda item: -item[1][0])[:MOST]
    return [
        Evidence(f"it was reading {path} ({amount(size, 'bytes')})", "telemetry", at, size)
        for path, (size, at) in largest
    ]
