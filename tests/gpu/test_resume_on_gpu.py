"""PyTorch loops on a card, unedited, killed -9 twice under `holdfast run`: each ends with the bits of the undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

SCRIPT = Path(__file__).parents[1] / "scripts" / "resume_torch_gpu.py"
KINDS = ("plain", "workers", "mixed_precision", "accumulation_and_validation", "noise_on_the_card")
STEPS, KILLS = 240, 2
PATIENCE_S = 240.0


def trained_steps(steps: Path) -> list[int]:
    """The process of each."""
    return [int(line) for line in steps.read_text().split()] if steps.exists() else []


@pytest.mark.parametrize("kind", KINDS)
def test_killed_twice_it_ends_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    import torch

    words = [sys.executable, str(SCRIPT), kind]
    alone, held = (tmp_path / name for name in ("alone", "held"))
    for place in (alone, held):
        place.mkdir()
    subprocess.run([*words, "steps", "result.pt"], cwd=alone, check=True, timeout=PATIENCE_S)
    options = ["--checkpoint", "1", "--dir", str(tmp_path / "state")]
    run = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "run", *options, "--", *words, "steps", "result.pt"],
        cwd=held, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    chance, killed = random.Random(kind), set[int]()
    until = time.monotonic() + PATIENCE_S
    for number in range(KILLS):
        at = 90 + 70 * number + chance.randrange(40)
        while len(trained_steps(held / "steps")) < at and run.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        process = trained_steps(held / "steps")[-1]
        if process not in killed and run.poll() is None:
            os.kill(process, signal.SIGKILL)
            killed.add(process)
        time.sleep(0.5)
    _, said = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, said[-2000:]
    assert len(killed) == KILLS, "it was over before it was killed: the test proves nothing"
    expected: dict[str, Any] = torch.load(alone / "result.pt")
    found: dict[str, Any] = torch.load(held / "result.pt")
    different = [name for name, value in expected.items() if not torch.equal(value, found[name])]
    assert not different, said[-2000:]
    repeated = len(trained_steps(held / "steps")) - STEPS
    folder = max((tmp_path / "state" / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    events = list(Journal(folder / "journal").events())
    saved = [float(event.data["paused_s"]) for event in events if event.kind == "checkpoint.saved"]
    print(
        f"\n{kind:28} killed {len(killed)} times, {repeated} steps trained again, pause {1000 * sorted(saved)[len(saved) // 2]:.1f} ms in the middle of {len(saved)}"
    )
