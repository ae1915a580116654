"""A plan: what a batch needs, by kind and by layer, whether it fits, what the largest is, and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.planning.measured import Measured
from holdfast.planning.options import Option, options

# Of a limit, left alone. On the host one process takes up to 8 % more than another that does the same: at 4 % a batch that needed
# 672 MiB as predicted took 699 of 700 MiB after ten steps, and was killed within 500. A card's allocator counts exactly.
HEADROOM_RATIO, CARD_HEADROOM_RATIO = 0.08, 0.04
SWEET_RATIO = 1.05  # of the best time a sample: the smallest batch that comes so near
RAM_SIZES_GIB = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)
CARD_SIZES_GIB = (4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 80, 96, 141, 192)
SYSTEM_BYTES = 1 << 30  # of a machine's RAM: what it runs beside a job
GIB = 1 << 30
BY_LAYER = 10


@dataclass(frozen=True, slots=True)
class Room:
    """What the job may take, in bytes; None where nothing says."""

    host: int | None
    gpu: int | None = None
    of: str = "this machine"


@dataclass(frozen=True, slots=True)
class Plan:
    measured: Measured
    room: Room
    batch: int
    fits: bool
    host_bytes: int
    gpu_bytes: int
    largest_batch: int | None  # None where there is no limit
    micro_batch: int
    by_kind: dict[str, int]
    by_layer: list[tuple[str, int]]
    options: list[Option]
    smallest_ram_gib: int | None
    smallest_card_gib: int | None
    seconds_a_sample: list[tuple[int, float]]
    sweet_spot: int

    @property
    def is_extrapolated(self) -> bool:
        """Whether the largest batch is well beyond what was measured."""
        return self.largest_batch is not None and self.largest_batch > 2 * self.measured.last.rows

    def as_json(self) -> dict[str, Any]:
        """As the README promises it; more keys may come, these stay."""
        return {
            "fits": self.fits,
            "batch": self.batch,
            "peak_bytes": {"host": self.host_bytes, "gpu": self.gpu_bytes},
            "largest_batch": self.largest_batch,
            "micro_batch": self.micro_batch,
            "by_kind": self.by_kind,
            "by_layer": [{"name": name, "bytes": size} for name, size in self.by_layer],
            "options": [{"title": o.title, "saves_bytes": o.saves_bytes, "how": o.how} for o in self.options],
            "limit_bytes": {"host": self.room.host, "gpu": self.room.gpu},
            "smallest_gib": {"ram": self.smallest_ram_gib, "card": self.smallest_card_gib},
            "seconds_a_sample": [{"batch": rows, "seconds": seconds} for rows, seconds in self.seconds_a_sample],
            "sweet_spot": self.sweet_spot,
            "measured": [
                {"batch": p.rows, "host_bytes": p.host_bytes, "gpu_bytes": p.gpu_bytes or 0, "seconds": p.seconds}
                for p in self.measured.points
            ],
        }


def plan(found: Measured, room: Room, asked: int | None = None) -> Plan:
    batch = asked or found.own_batch
    host, gpu = found.host(), found.gpu()
    host_bytes, gpu_bytes = int(host.at(batch)), int(gpu.at(batch)) if gpu is not None else 0
    within = [host.rows_within(room.host * (1 - HEADROOM_RATIO))] if room.host is not None else []
    if gpu is not None and room.gpu is not None:
        within.append(gpu.rows_within(room.gpu * (1 - CARD_HEADROOM_RATIO)))
    largest = min(within, default=None)
    kinds = by_kind(found, batch, host_bytes, gpu_bytes)
    times = [(p.rows, p.seconds / p.rows) for p in found.points]
    best = min(seconds for _, seconds in times)
    return Plan(
        measured=found,
        room=room,
        batch=batch,
        fits=largest is None or batch <= largest,
        host_bytes=host_bytes,
        gpu_bytes=gpu_bytes,
        largest_batch=largest,
        micro_batch=micro_batch(batch, largest),
        by_kind=kinds,
        by_layer=_by_layer(found, batch),
        options=options(found, kinds, batch, largest),
        smallest_ram_gib=_smallest(host_bytes + SYSTEM_BYTES, RAM_SIZES_GIB),
        smallest_card_gib=_smallest(gpu_bytes, CARD_SIZES_GIB) if gpu_bytes else None,
        seconds_a_sample=times,
        sweet_spot=next(rows for rows, seconds in times if seconds <= SWEET_RATIO * best),
    )


def micro_batch(batch: int, largest: int | None) -> int:
    """Parts of the same size, as few as fit; 0 where not even one sample does."""
    if largest is None or batch <= largest:
        return batch
    return -(-batch // -(-batch // largest)) if largest else 0


def by_kind(found: Measured, batch: int, host_bytes: int, gpu_bytes: int) -> dict[str, int]:
    """All of the peak: what no other kind explains is the space that kernels and allocators work in."""
    a_batch = found.batch_bytes * batch // max(1, found.last.rows)
    state = {"weights": found.weights, "gradients": found.gradients, "optimizer": found.optimizer}
    activations = int(found.activations_a_row * batch)
    data = found.data_bytes + a_batch + found.workers_bytes
    rest = host_bytes + gpu_bytes - sum(state.values()) - found.framework_bytes - data
    if found.activations is None:  # not told apart: what grows with the batch is theirs
        activations = max(0, int(host_bytes - found.host().at(1)))
    return {
        **state,
        "activations": min(activations, max(0, rest)),
        "workspace": max(0, rest - activations),
        "framework": found.framework_bytes,
        "data": data,
    }


def _by_layer(found: Measured, batch: int) -> list[tuple[str, int]]:
    """Activations at this batch, weights, gradients and the optimizer's share."""
    beside = (found.gradients + found.optimizer) / found.weights if found.weights else 0.0
    layers = {name: int((1 + beside) * size) for name, size in found.layer_weights.items()}
    for name, size in found.layers:
        layers[name] = layers.get(name, 0) + size * batch // max(1, found.last.rows)
    ordered = sorted(layers.items(), key=lambda pair: -pair[1])
    return [(name, size) for name, size in ordered[:BY_LAYER] if size]


def _smallest(needed: int, sizes: tuple[int, ...]) -> int | None:
    return next((gib for gib in sizes if needed <= gib * GIB * (1 - HEADROOM_RATIO)), None)
