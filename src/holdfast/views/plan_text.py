"""A plan, for people: whether it fits, what takes the memory, and what would help."""

from __future__ import annotations

from holdfast.planning.plan import Plan
from holdfast.units import amount
from holdfast.views.safe_text import safe

KINDS = ("weights", "gradients", "optimizer", "activations", "workspace", "framework", "data")
BAR = 28
NO_LIMIT = 100  # times what was measured: beyond that a number would say nothing
RED, GREEN, PLAIN = "\033[31m", "\033[32m", "\033[0m"


def as_text(plan: Plan, width: int, colour: bool) -> str:
    line = verdict_line(plan)
    if colour:
        words, shade = ("does not fit", RED) if not plan.fits else ("fits", GREEN)
        line = line.replace(words, f"{shade}{words}{PLAIN}", 1)
    return "\n\n".join([line, *(f"{title}\n{text}" for title, text in sections(plan, width))])


def verdict_line(plan: Plan) -> str:
    words = "fits" if plan.fits else "does not fit"
    needs = f"{amount(plan.host_bytes, 'bytes')} of RAM"
    if plan.gpu_bytes:
        needs += f" and {amount(plan.gpu_bytes, 'bytes')} of a card"
    limits = [amount(size, "bytes") for size in (plan.room.host, plan.room.gpu if plan.gpu_bytes else None) if size]
    there = f"; {plan.room.of} has {' and '.join(limits)} for it" if limits else ""
    return f"Batch {plan.batch} {words}: it needs {needs} at its peak{there}."


def sections(plan: Plan, width: int) -> list[tuple[str, str]]:
    layers = f"By layer, the largest {len(plan.by_layer)} (activations at batch {plan.batch}, weights and their share)"
    found = [
        ("Batches", _batches(plan)),
        ("Memory by kind", _kinds(plan)),
        (layers, _layers(plan, width)),
        ("Time a sample", _times(plan)),
        ("What would make room (estimated)", _options(plan)),
    ]
    return [(title, text) for title, text in found if text]


def _batches(plan: Plan) -> str:
    lines: list[str] = []
    if plan.largest_batch is not None:
        lines.append(f"  largest batch that fits, with headroom   {_largest(plan, plan.largest_batch)}")
    if not plan.fits:
        lines.append(f"  micro-batch for a batch of {plan.batch:<13}  {plan.micro_batch or 'not even one sample fits'}")
    if plan.smallest_ram_gib is not None:
        lines.append(f"  smallest RAM that would run batch {plan.batch:<6} {plan.smallest_ram_gib} GiB")
    if plan.smallest_card_gib is not None:
        lines.append(f"  smallest card that would run it          {plan.smallest_card_gib} GiB")
    if not plan.measured.resized:
        lines.append("  only the script's own batch was measured: other sizes are estimated from it")
    return "\n".join(lines)


def _largest(plan: Plan, largest: int) -> str:
    measured = plan.measured.last.rows
    if largest > NO_LIMIT * measured:
        return f"more than {NO_LIMIT * measured}: memory is not what limits it"
    return f"{largest} (measured up to {measured}, beyond that estimated)" if plan.is_extrapolated else str(largest)


def _kinds(plan: Plan) -> str:
    most = max(plan.by_kind.values()) or 1
    rows = [_row(kind, plan.by_kind[kind], most, 24) for kind in KINDS]
    return "\n".join(rows)


def _layers(plan: Plan, width: int) -> str:
    if not plan.by_layer:
        return ""
    most = plan.by_layer[0][1]
    names = min(max(len(name) for name, _ in plan.by_layer), max(24, width - BAR - 16))
    rows = [_row(safe(name)[:names], size, most, names) for name, size in plan.by_layer]
    return "\n".join(rows)


def _row(name: str, size: int, most: int, names: int) -> str:
    return f"  {name:<{names}} {amount(size, 'bytes'):>9}  {'█' * round(BAR * size / most)}".rstrip()


def _times(plan: Plan) -> str:
    rows = [f"  batch {rows:>6}  {1000 * s:9.3f} ms" for rows, s in plan.seconds_a_sample]
    note = f"  no faster beyond batch {plan.sweet_spot}" if plan.sweet_spot < plan.measured.last.rows else ""
    return "\n".join(line for line in [*rows, note] if line)


def _options(plan: Plan) -> str:
    if not plan.options:
        return ""
    lines = []
    for option in plan.options:
        lines.append(f"  {amount(option.saves_bytes, 'bytes'):>9}  {option.title}")
        lines += [f"{'':13}{line}" for line in option.how.splitlines()]
    return "\n".join(lines)
