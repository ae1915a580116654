"""`holdfast run python train.py` with a PyTorch loop people write, in a container that is too small for its batch."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal
from lab.case import Limits
from tests.staging import staged

SCRIPT = Path(__file__).parents[1] / "scripts" / "torch_unedited.py"
MIB = 1 << 20
PLENTY = 8 << 30
KILLED = (-9, 137)
pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]


def trained(kind: str, rows: int, limit: int, place: Path, watched: bool) -> tuple[int, Any, int, list[Any]]:
    import torch

    place.mkdir(parents=True, exist_ok=True)
    result, state = place / "result.pt", place / "state"
    command = [sys.executable, str(SCRIPT), kind, str(rows), str(result), "4"]
    if watched:
        command = [sys.executable, "-m", "holdfast", "run", "--dir", str(state), "--", *command]
    with staged(Limits(memory=limit), f"{kind}-{place.name}") as stage:
        done = subprocess.run(stage.wrap(command), cwd=place, capture_output=True, timeout=280, check=False)
        peak = stage.memory_peak() or 0
    events = []
    if watched:
        run = max((state / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
        events = Journal(run / "journal").events()
    return done.returncode, (torch.load(result) if result.exists() else None), peak, events


@pytest.mark.parametrize(
    ("kind", "rows", "within"), [("convolution", 700, 1e-6), ("attention", 300, 1e-4), ("normalised", 500, 1e-3)]
)
def test_a_batch_that_is_killed_bare_finishes_with_at_most_one_restart(
    kind: str, rows: int, within: float, tmp_path: Path
) -> None:
    base = 230 * MIB  # what PyTorch itself holds here
    code, whole, peak, _ = trained(kind, rows, PLENTY, tmp_path / "whole", watched=False)
    assert code == 0
    limit = base + int(0.55 * (peak - base))
    assert trained(kind, rows, limit, tmp_path / "bare", watched=False)[0] in KILLED, "it fits: nothing is shown"
    code, pieces, _, events = trained(kind, rows, limit, tmp_path / "watched", watched=True)
    assert code == 0
    assert sum(event.kind == "attempt.exit" for event in events) <= 1
    assert not [event.data for event in events if event.kind in ("rescue.refused", "inside.failed")]
    assert float((whole["weights"] - pieces["weights"]).norm() / whole["weights"].norm()) < within


def test_a_batch_that_fits_is_left_alone_bit_for_bit(tmp_path: Path) -> None:
    code, whole, peak, _ = trained("convolution", 500, PLENTY, tmp_path / "whole", watched=False)
    limit = int(1.15 * peak) + 32 * MIB
    code, watched, _, events = trained("convolution", 500, limit, tmp_path / "watched", watched=True)
    assert code == 0 and bool((whole["weights"] == watched["weights"]).all())
    assert not [event.kind for event in events if event.kind in ("rescue.foreseen", "rescue.k", "attempt.exit")]
