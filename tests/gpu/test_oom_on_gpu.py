"""On a GPU made small with `set_per_process_memory_fraction`: a batch that does not fit is trained all the same, and the
result is that of the uncapped run. Needs torch, and Keras for its part."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]

TORCH = """
import json, sys, torch, holdfast
cap, rows = float(sys.argv[1]), int(sys.argv[2])
if cap:
    torch.cuda.set_per_process_memory_fraction(cap * 2**30 / torch.cuda.get_device_properties(0).total_memory)
torch.manual_seed(1)
nn = torch.nn
blocks = [m for _ in range(8) for m in (nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())]
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
model = model.double().cuda()
kind = next(model.parameters()).dtype
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(rows, 3, 64, 64, generator=torch.Generator().manual_seed(2)).to("cuda", kind)
y = torch.randint(0, 10, (rows,), generator=torch.Generator().manual_seed(3)).cuda()
for _ in range(10):
    optimizer.zero_grad()
    loss = holdfast.backward(model, lambda x, y: nn.functional.cross_entropy(model(x), y), x, y)
    optimizer.step()
weights = torch.cat([p.detach().double().flatten() for p in model.parameters()]).cpu()
torch.save(weights, sys.argv[3])
print(json.dumps({"peak_gib": torch.cuda.max_memory_reserved() / 2**30, "loss": float(loss)}))
"""
KERAS = """
import json, os, sys
os.environ["KERAS_BACKEND"] = "torch"
import torch, keras, numpy as np
cap, rows = float(sys.argv[1]), int(sys.argv[2])
if cap:
    torch.cuda.set_per_process_memory_fraction(cap * 2**30 / torch.cuda.get_device_properties(0).total_memory)
keras.utils.set_random_seed(1)
layers = keras.layers
body = [layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(9)]
model = keras.Sequential([layers.Input((64, 64, 3)), *body, layers.GlobalAveragePooling2D(), layers.Dense(10)])
model.compile(keras.optimizers.SGD(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
random = np.random.default_rng(0)
x, y = random.normal(size=(rows * 2, 64, 64, 3)).astype("f"), random.integers(0, 10, rows * 2)
model.fit(x, y, batch_size=rows, epochs=5, shuffle=False, verbose=0)
torch.save(torch.cat([torch.as_tensor(np.asarray(w, "float64")).flatten() for w in model.get_weights()]), sys.argv[3])
print(json.dumps({"iterations": int(model.optimizer.iterations), "peak_gib": torch.cuda.max_memory_reserved() / 2**30}))
"""


def trained(program: str, cap_gib: float, rows: int, place: Path) -> tuple[object, dict[str, float]]:
    import torch

    script, result = place / "train.py", place / f"{cap_gib}.pt"
    script.write_text(program)
    command = [sys.executable, str(script), str(cap_gib), str(rows), str(result)]
    if cap_gib:
        command = [sys.executable, "-m", "holdfast", "run", "--", *command]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return torch.load(result), json.loads(done.stdout.splitlines()[-1])


def check(program: str, cap_gib: float, rows: int, place: Path, within: float) -> None:
    whole, uncapped = trained(program, 0, rows, place)
    pieces, capped = trained(program, cap_gib, rows, place)
    print(uncapped, capped)
    assert uncapped["peak_gib"] > cap_gib > capped["peak_gib"] * 0.99, "the batch fits: nothing is shown"
    assert float((whole - pieces).norm() / whole.norm()) < within  # type: ignore[operator,attr-defined]


@pytest.mark.parametrize(("cap_gib", "rows"), [(2.0, 1024)])
def test_a_pytorch_loop_with_the_one_call(cap_gib: float, rows: int, tmp_path: Path) -> None:
    check(TORCH, cap_gib, rows, tmp_path, within=1e-9)


@pytest.mark.skipif(find_spec("keras") is None, reason="needs Keras")
@pytest.mark.parametrize(("cap_gib", "rows"), [(8.0, 3000), (2.0, 1024)])
def test_keras_on_torch_unedited(cap_gib: float, rows: int, tmp_path: Path) -> None:
    check(KERAS, cap_gib, rows, tmp_path, within=1e-4)
