"""A batch that does not fit on a GPU: seconds from the first failure to the next finished step, and what is left then.

    python -m bench.oom [--cap-gib 8] [--rows 897]

One process per contender, each capped with `set_per_process_memory_fraction`, so that one card serves for all. Ours keeps
the batch; Accelerate's `find_executable_batch_size` and Lightning's BatchSizeFinder end with another one, which their
lines say. A contender that is not installed is left out and named. Needs torch; the others where they are there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from importlib.util import find_spec
from typing import Any

STEPS_AFTER = 20
PATIENCE_S = 60.0  # a contender
CONTENDERS = {"holdfast": "torch", "keras on torch": "keras", "accelerate": "accelerate", "lightning": "lightning"}


def network(torch: Any) -> Any:
    nn = torch.nn
    blocks = [nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()) for _ in range(12)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *blocks, *head).cuda()


def cap(torch: Any, gib: float) -> None:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, gib * 2**30 / total))


def batch(torch: Any, rows: int) -> Any:
    return torch.randn(rows, 3, 96, 96, device="cuda"), torch.randint(0, 10, (rows,), device="cuda")


def holdfast_way(torch: Any, rows: int) -> dict[str, Any]:
    import holdfast  # noqa: PLC0415

    model = network(torch)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = batch(torch, rows)

    def loss_of(x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(x), y)

    def step() -> None:
        optimizer.zero_grad()
        holdfast.backward(model, loss_of, x, y)
        optimizer.step()
        torch.cuda.synchronize()

    return timed(step, rows)


def keras_way(torch: Any, rows: int) -> dict[str, Any]:
    """Unedited `train_on_batch`, with the part that `holdfast run` loads."""
    import os  # noqa: PLC0415

    os.environ["KERAS_BACKEND"] = "torch"
    import keras  # noqa: PLC0415

    from holdfast.inside.keras import adapter  # noqa: PLC0415
    from holdfast.inside.telemetry import Recorder  # noqa: PLC0415

    adapter.install(Recorder(Silent(), {"policy": "protect", "rescue": {"k": None}}))  # type: ignore[arg-type]
    layers = keras.layers
    convolutions = [layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(13)]
    model = keras.Sequential(
        [layers.Input((96, 96, 3)), *convolutions, layers.GlobalAveragePooling2D(), layers.Dense(10)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = batch(torch, rows)
    x = x.permute(0, 2, 3, 1).contiguous()

    def step() -> None:
        model.train_on_batch(x, y)
        torch.cuda.synchronize()

    return timed(step, rows)


class Silent:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_named: None


def accelerate_way(torch: Any, rows: int) -> dict[str, Any]:
    from accelerate.utils import find_executable_batch_size  # noqa: PLC0415

    began = time.perf_counter()

    @find_executable_batch_size(starting_batch_size=rows)
    def train(batch_size: int) -> tuple[float, int, float]:
        model = network(torch)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        x, y = batch(torch, batch_size)

        def step() -> None:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            torch.cuda.synchronize()

        step()
        first = time.perf_counter() - began
        return first, batch_size, rate(step, batch_size)

    first, found, rows_per_s = train()
    return {"first_s": first, "rows_per_step": found, "rows_per_s": rows_per_s}


def lightning_way(torch: Any, rows: int) -> dict[str, Any]:
    import lightning  # noqa: PLC0415
    from lightning.pytorch.tuner import Tuner  # noqa: PLC0415

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc]
        """One image again and again: what is timed is the search, not the making of data."""

        def __init__(self) -> None:
            self.image, self.label = torch.randn(3, 96, 96), torch.tensor(1)

        def __len__(self) -> int:
            return 4 * rows

        def __getitem__(self, _number: int) -> Any:
            return self.image, self.label

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.batch_size, self.net = 2, network(torch)

        def training_step(self, pair: Any, _number: int) -> Any:
            return torch.nn.functional.cross_entropy(self.net(pair[0]), pair[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=1e-3)

        def train_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(Rows(), batch_size=self.batch_size)

    module = Module()
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = lightning.Trainer(max_steps=1, accelerator="gpu", devices=1, **quiet)
    began = time.perf_counter()
    found = Tuner(trainer).scale_batch_size(
        module, mode="binsearch", init_val=max(2, rows // 8), max_trials=8, steps_per_trial=1
    )
    return {"first_s": time.perf_counter() - began, "rows_per_step": int(found or 0), "rows_per_s": None}


def timed(step: Any, rows: int) -> dict[str, Any]:
    began = time.perf_counter()
    step()
    first = time.perf_counter() - began
    return {"first_s": first, "rows_per_step": rows, "rows_per_s": rate(step, rows)}


def rate(step: Any, rows: int) -> float:
    began = time.perf_counter()
    for _ in range(STEPS_AFTER):
        step()
    return rows * STEPS_AFTER / (time.perf_counter() - began)


WAYS = {"holdfast": holdfast_way, "keras on torch": keras_way, "accelerate": accelerate_way, "lightning": lightning_way}


def one(name: str, gib: float, rows: int) -> None:
    import torch  # noqa: PLC0415

    cap(torch, gib)
    small = torch.randn(4, 3, 96, 96, device="cuda")  # kernels are loaded before the clock starts
    network(torch)(small).sum().backward()
    torch.cuda.synchronize()
    print(json.dumps(WAYS[name](torch, rows)))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--cap-gib", type=float, nargs="+", default=[8.0, 2.0])
    words.add_argument("--rows", type=int, default=1500)
    words.add_argument("--one", choices=sorted(WAYS))
    asked = words.parse_args()
    if asked.one:
        one(asked.one, asked.cap_gib[0], asked.rows)
        return
    for gib in asked.cap_gib:
        for name, package in CONTENDERS.items():
            if find_spec(package) is None:
                print(f"{name}: {package} is not installed")
                continue
            print(f"{gib:3.0f} GiB  {name:15}  {measured(name, gib, asked.rows)}", flush=True)


def measured(name: str, gib: float, rows: int) -> str:
    """In a process of its own. One that fails or takes too long says so, and the others go on."""
    command = [sys.executable, "-m", "bench.oom", "--one", name, "--cap-gib", str(gib), "--rows", str(rows)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {PATIENCE_S:.0f} s"
    if done.returncode:
        return f"failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}"
    found = json.loads(done.stdout.splitlines()[-1])
    kept = "kept" if found["rows_per_step"] == rows else f"of {rows}"
    speed = f"{found['rows_per_s']:.0f} rows/s afterwards" if found["rows_per_s"] else "it only searches"
    return (
        f"{found['first_s']:5.2f} s until a step was finished, {found['rows_per_step']} rows a step ({kept}), {speed}"
    )


if __name__ == "__main__":
    main()
