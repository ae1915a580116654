"""What would make room, with what it would save of this model, and the lines of code. Estimates: nothing of it was run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.planning.measured import Measured

KEPT_BY_RECOMPUTING = 0.35  # of activations: about the square root of the depth, and one part at a time again
HALF = 0.5
WORTH_BYTES = 1 << 20
SHARDS = 4
ADAPTIVE = {"adam", "adamw", "nadam", "radam", "adamax", "lamb", "adabelief"}  # two numbers for each weight


@dataclass(frozen=True, slots=True)
class Option:
    title: str
    saves_bytes: int
    how: str


def options(found: Measured, kinds: dict[str, int], batch: int, largest: int | None) -> list[Option]:
    """Those that save something, the most first."""
    torch = found.framework == "torch"
    candidates = [
        _accumulation(found, batch, largest, torch),
        _mixed(found, kinds, torch),
        _recomputing(kinds, torch),
        _optimizer(found, kinds, torch),
        _sharding(kinds, torch),
    ]
    worth = [one for one in candidates if one is not None and one.saves_bytes >= WORTH_BYTES]
    return sorted(worth, key=lambda one: -one.saves_bytes)


def _accumulation(found: Measured, batch: int, largest: int | None, torch: bool) -> Option | None:
    parts = max(2, math.ceil(batch / largest)) if largest else 2
    if batch < 2 * parts and batch <= (largest or batch):
        return None
    curve = found.gpu() or found.host()
    piece = math.ceil(batch / parts)
    how = (
        f"for i, (x, y) in enumerate(loader):  # batches of {piece}\n"
        f"    (criterion(model(x), y) / {parts}).backward()\n"
        f"    if (i + 1) % {parts} == 0: optimizer.step(); optimizer.zero_grad()"
        if torch
        else f"model.compile(keras.optimizers.Adam(..., gradient_accumulation_steps={parts}), ...)\n"
        f"model.fit(..., batch_size={piece})"
    )
    title = f"gradient accumulation: {parts} parts of {piece} (`holdfast run` does it by itself where memory runs out)"
    return Option(title, int(curve.at(batch) - curve.at(piece)), how)


def _mixed(found: Measured, kinds: dict[str, int], torch: bool) -> Option | None:
    if found.is_half:
        return None
    how = (
        'with torch.autocast("cuda", dtype=torch.bfloat16):  # or "cpu"\n    loss = criterion(model(x), y)'
        if torch
        else 'keras.mixed_precision.set_global_policy("mixed_bfloat16")  # before the model is made'
    )
    return Option("mixed precision (bfloat16): half of the activations", int(HALF * kinds["activations"]), how)


def _recomputing(kinds: dict[str, int], torch: bool) -> Option | None:
    how = (
        "from torch.utils.checkpoint import checkpoint\nx = checkpoint(self.block, x, use_reentrant=False)  # for each block"
        if torch
        else "block.call = tf.recompute_grad(block.call)  # for each block; keras.RematScope() from Keras 3.9 on"
    )
    saved = int((1 - KEPT_BY_RECOMPUTING) * kinds["activations"])
    return Option("recomputing activations: about a third more time a step", saved, how)


def _optimizer(found: Measured, kinds: dict[str, int], torch: bool) -> Option | None:
    if not any(name.lower() in ADAPTIVE for name in found.optimizers):
        return None
    how = (
        "optimizer = torch.optim.SGD(model.parameters(), lr=..., momentum=0.9)  # saves half; Adafactor nearly all:\n"
        "optimizer = torch.optim.Adafactor(model.parameters())\n"
        "optimizer = bitsandbytes.optim.Adam8bit(model.parameters())  # on a GPU: three quarters, trains as Adam"
        if torch
        else 'model.compile(keras.optimizers.Adafactor(...), ...)  # or "lion", which has one number for each weight'
    )
    return Option("a smaller optimizer (Adafactor)", int(0.95 * kinds["optimizer"]), how)


def _sharding(kinds: dict[str, int], torch: bool) -> Option | None:
    state = kinds["weights"] + kinds["gradients"] + kinds["optimizer"]
    how = (
        "from torch.distributed.fsdp import fully_shard\nfully_shard(model)  # started by: torchrun --nproc-per-node 4 train.py"
        if torch
        else "keras.distribution.set_distribution(keras.distribution.ModelParallel(...))  # JAX backend"
    )
    return Option(f"sharding over {SHARDS} devices, on each of them", int(state * (1 - 1 / SHARDS)), how)
