"""/dev/shm, through which the workers of a DataLoader pass their batches. Containers have 64 MiB unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.checks.contract import Here, Line, bad, ok, warn
from holdfast.checks.samples import read_once
from holdfast.probes import Missing
from holdfast.probes.shm import SharedMemory
from holdfast.units import amount

MIB = 1 << 20
TOO_SMALL_BYTES, TOO_FULL_BYTES = 128 * MIB, 16 * MIB
SMALL_BYTES = 1 << 30
LARGER = (
    "docker run --shm-size=8g … (or --ipc=host); in Kubernetes mount an emptyDir with medium: Memory at /dev/shm; "
    "elsewhere sudo mount -o remount,size=8g /dev/shm"
)


def look(here: Here) -> Iterator[Line]:
    here.asked("/dev/shm")
    try:
        found = read_once(SharedMemory, here)
    except Missing as reason:
        yield bad("shm", f"there is no /dev/shm ({reason}): workers of a data loader cannot pass batches on", LARGER)
        return
    free, total = found["shm.free_bytes"], found["shm.total_bytes"]
    if free is None or total is None:
        yield bad("shm", "/dev/shm does not answer", LARGER)
    else:
        yield judged(free, total)


def judged(free: float, total: float) -> Line:
    text = f"/dev/shm has {amount(free, 'bytes')} free of {amount(total, 'bytes')}"
    if total < TOO_SMALL_BYTES:
        return bad("shm", f"{text}: workers of a data loader die there with a bus error", LARGER)
    if free < TOO_FULL_BYTES:
        return bad("shm", text, "remove what lies in it: ls -l /dev/shm; leftovers of dead jobs stay there")
    if free < SMALL_BYTES:
        return warn("shm", text, LARGER)
    return ok("shm", text)
