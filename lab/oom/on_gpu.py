"""On a GPU made small with `set_per_process_memory_fraction`: PyTorch with the one call; Keras on torch, Hugging Face's
and Lightning's Trainer unedited."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.oom.table import Row

HEADINGS = ("program", "cap", "rows", "needs", "exit", "how", "k", "why", "peak", "apart", "seconds")
PROGRAMS = Path(__file__).parent
PATIENCE_S = 60.0
CASES = (
    ("gpu_torch.py", 2048, 1e-9),
    ("gpu_keras.py", 3000, 1e-4),
    ("gpu_hf.py", 256, 1e-7),  # its loss is in float32, whatever the model is
    ("gpu_lightning.py", 1024, 1e-9),
)
CAPS_GIB = (8.0, 2.0)


def rows() -> Iterator[Row]:
    for program, batch, within in CASES:
        with tempfile.TemporaryDirectory() as folder:
            whole = _run(program, 0.0, batch, Path(folder))
            for cap in CAPS_GIB:
                run = _run(program, cap, batch, Path(folder))
                distance = _apart(Path(folder), cap) if whole.get("exit") == run.get("exit") == 0 else None
                named = (run.get("why", {}).get("cause") or {}).get("id") == "gpu-memory-exhausted"
                close = distance is not None and distance < within
                good = close and named and float(whole.get("peak_gib", 0.0)) > cap
                yield Row(good, _cells(program, cap, batch, distance, {**run, "whole": whole}))


def _cells(program: str, cap: float, batch: int, distance: float | None, run: dict[str, Any]) -> tuple[str, ...]:
    whole = run["whole"]
    needs = float(whole.get("peak_gib", 0.0))
    why = run.get("why", {})
    return (
        program, f"{cap:.0f} GiB", str(batch), f"{needs:.1f} GiB", str(run.get("exit")), str(run.get("how", "")),
        str(run.get("k", "")), f"{why.get('outcome')}, {(why.get('cause') or {}).get('id')}",
        f"{float(run.get('peak_gib', 0.0)):.1f} GiB", "-" if distance is None else f"{distance:.1e}",
        f"{float(run.get('seconds', 0.0)):.1f} (whole {float(whole.get('seconds', 0.0)):.1f})",
    )  # fmt: skip


def _run(program: str, cap: float, batch: int, place: Path) -> dict[str, Any]:
    """A row that fails or hangs says so, and the others go on."""
    command = [sys.executable, str(PROGRAMS / program), str(cap), str(batch), str(place / f"{cap}.npy")]
    if cap:
        command = [sys.executable, "-m", "holdfast", "run", "--dir", str(place / f"state{cap}"), "--", *command]
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return {"exit": f"over {PATIENCE_S:.0f} s"}
    said = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(said[-1]) if said else {}
    found["exit"] = (
        done.returncode
        if not done.returncode
        else f"{done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][-120:]}"
    )
    return found | (_told(place / f"state{cap}") if cap else {})


def _told(state: Path) -> dict[str, Any]:
    from holdfast.journal import Journal  # noqa: PLC0415 - not where a run is bare

    run = max((state / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    events = Journal(run / "journal").events()
    caught = sum(event.kind == "rescue.caught" for event in events)
    k = max((int(event.data["k"]) for event in events if event.kind == "rescue.k"), default=1)
    why = subprocess.run(
        [sys.executable, "-m", "holdfast", "why", "--dir", str(state), "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {"how": f"caught {caught}" if caught else "not touched", "k": k, "why": json.loads(why.stdout or "{}")}


def _apart(place: Path, cap: float) -> float:
    import numpy as np  # noqa: PLC0415

    whole, pieces = np.load(place / "0.0.npy"), np.load(place / f"{cap}.npy")
    return float(np.linalg.norm(whole - pieces) / np.linalg.norm(whole))
