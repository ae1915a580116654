"""Loops people write, unedited, on a GPU made small with `--gpu-memory`: each finishes with exit 0 and the weights of the
run that had enough. Prints a table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).parents[1] / "scripts" / "torch_unedited_gpu.py"
PATIENCE_S = 120.0
# Rows, and how far apart the weights may lie: in float64 but where a loop says otherwise.
LOOPS: dict[str, tuple[int, float]] = {
    "plain": (2048, 1e-9),
    "accumulation": (2048, 1e-9),
    "two_optimizers": (2048, 1e-9),
    "clipping": (2048, 1e-9),
    "schedulers": (2048, 1e-9),
    "validation": (2048, 1e-9),
    "encoder_and_decoder": (2048, 1e-9),
    "contrastive": (2048, 1e-9),
    "loss_within": (512, 1e-9),
    "lstm": (4096, 1e-9),
    "mixed_precision": (8192, 5e-3),
    "batch_normalisation": (2048, 0.2),
    "language_model": (160, 1e-7),  # Adam divides by gradients that are nearly zero
    "segmentation": (768, 1e-7),
    "accelerated": (2048, 1e-9),
    "compiled": (2048, 1e-9),
}
CAP_GIB = 2.0


@pytest.fixture(scope="module")
def table() -> Any:
    rows: list[str] = []
    yield rows
    print("\n| loop | cap | rows | needs | exit | how | k | peak | apart | seconds |\n" + "| --- " * 10 + "|")
    print("\n".join(rows))


def trained(loop: str, rows: int, place: Path, cap_gib: float) -> tuple[Any, dict[str, Any]]:
    import torch

    result, state = place / f"{cap_gib}.pt", place / "state"
    command = [sys.executable, str(SCRIPT), loop, str(rows), str(result)]
    if cap_gib:
        options = ["--gpu-memory", f"{int(cap_gib * 1024)}M", "--dir", str(state)]
        command = [sys.executable, "-m", "holdfast", "run", *options, "--", *command]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith("{")]
    told: dict[str, Any] = {
        "exit": done.returncode,
        "end": done.stderr[-1500:],
        **(json.loads(said[-1]) if said else {}),
    }
    if cap_gib:
        run = max((state / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
        told["events"] = [(event.kind, event.data) for event in Journal(run / "journal").events()]
    return (torch.load(result) if result.exists() else None), told


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_that_does_not_fit_the_card_finishes_with_the_same_weights(
    loop: str, tmp_path: Path, table: Any
) -> None:
    rows, within = LOOPS[loop]
    whole, uncapped = trained(loop, rows, tmp_path, 0.0)
    assert uncapped["exit"] == 0, uncapped["end"]
    pieces, capped = trained(loop, rows, tmp_path, CAP_GIB)
    events = capped["events"]
    apart = float((whole - pieces).norm() / whole.norm()) if pieces is not None else float("nan")
    caught = sum(kind == "rescue.caught" for kind, _ in events)
    refused = [data["reason"] for kind, data in events if kind == "rescue.refused"]
    k = max((int(data["k"]) for kind, data in events if kind == "rescue.k"), default=1)
    table.append(
        f"| {loop} | {CAP_GIB:g} GiB | {rows} | {uncapped['peak_gib']:.1f} GiB | {capped['exit']} | caught {caught}"
        f"{', refused: ' + refused[0] if refused else ''} | {k} | {capped.get('peak_gib', 0.0):.1f} GiB | {apart:.1e} "
        f"| {capped.get('seconds', 0.0):.1f} (whole {uncapped['seconds']:.1f}) |"
    )
    assert uncapped["peak_gib"] > CAP_GIB, "it fits: nothing is shown"
    assert capped["exit"] == 0, (refused, capped["end"])
    assert caught > 0 and apart < within
    assert not [data for kind, data in events if kind == "inside.failed"]


def test_a_loop_that_fits_is_left_alone_bit_for_bit(tmp_path: Path) -> None:
    whole, uncapped = trained("plain", 64, tmp_path, 0.0)
    watched, capped = trained("plain", 64, tmp_path, 64.0)
    assert uncapped["exit"] == capped["exit"] == 0
    assert bool((whole == watched).all())
    assert not [kind for kind, _ in capped["events"] if kind in ("rescue.caught", "rescue.k", "rescue.refused")]
