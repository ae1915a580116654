"""A GPU that is there and cannot be used, and why: driver, library, container, CUDA_VISIBLE_DEVICES. Then each card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.checks import gpu_cards
from holdfast.checks.contract import Here, Line, bad, ok, warn
from holdfast.probes import Missing
from holdfast.probes.gpu import NoSession, Session, expect_driver, open_session, text
from holdfast.probes.kernel_files import pid_namespace, read

NVIDIA = b"0x10de"
DISPLAY_CLASSES = (b"0x0300", b"0x0302")
WITH_RUNTIME = (
    "docker run --gpus all … (needs nvidia-container-toolkit on the host); in Kubernetes resources.limits "
    "nvidia.com/gpu: 1; apptainer --nv"
)
INSTALL_DRIVER = "install NVIDIA's driver (Ubuntu: sudo ubuntu-drivers install), then reboot"

# By NVML's own numbers.
NO_PERMISSION, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, LOST, MISMATCH, UNKNOWN = 4, 9, 12, 15, 18, 999
IN_WORDS = {
    NO_PERMISSION: ("this user may not open the NVIDIA driver's devices", "ls -l /dev/nvidia*: ask for the group they have"),
    DRIVER_NOT_LOADED: ("the NVIDIA driver is installed and not loaded", "sudo modprobe nvidia; `dmesg | grep NVRM` says why not"),
    LIBRARY_NOT_FOUND: (
        "the NVIDIA driver is loaded, and its library (libnvidia-ml.so.1) is not found",
        "install the driver's libraries of the same version (Ubuntu: libnvidia-compute-VERSION)",
    ),
    LOST: ("a GPU has fallen off the bus", "reboot; if it comes back, look at its power cables and cooling"),
    MISMATCH: (
        "the NVIDIA driver was updated while the old one runs (Driver/library version mismatch)",
        "reboot, or end what uses the GPU and reload: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; sudo modprobe nvidia",
    ),
    UNKNOWN: (
        "the NVIDIA driver answers with an unknown error",
        "in a container: start it again (its right to the devices was lost); else reboot, and see `dmesg | grep NVRM`",
    ),
}  # fmt: skip


def look(here: Here) -> Iterator[Line]:
    here.asked("the NVIDIA driver")
    try:
        expect_driver(here.root)
    except Missing as reason:
        yield from _without_driver(here, str(reason))
        return
    if lacks_runtime(here):
        yield _container_without_runtime(here)
        return
    try:
        session = open_session()
    except NoSession as reason:
        yield _no_session(here, reason)
        return
    try:
        yield from _hidden(here.environment, session)
        yield from gpu_cards.lines(here, session, seen_cards(here.environment, session))
    finally:
        session.nvml.nvmlShutdown()


# -- no driver, no library


def _without_driver(here: Here, reason: str) -> Iterator[Line]:
    drivers = list(_drivers_of_cards(here.root))
    if not drivers or set(drivers) == {"vfio-pci"}:  # which hands the card on to a virtual machine
        yield ok("gpu", reason)
    elif is_container(here):
        text = "an NVIDIA GPU is in this machine and not in this container"
        yield warn("gpu-driver", text, WITH_RUNTIME)
    elif "nouveau" in drivers:
        text = "an NVIDIA GPU is here with the driver nouveau, which no framework can use"
        yield warn("gpu-driver", text, INSTALL_DRIVER)
    else:
        yield bad("gpu-driver", "an NVIDIA GPU is on the PCI bus, and no driver for it is loaded", INSTALL_DRIVER)


def _drivers_of_cards(root: Path) -> Iterator[str]:
    """Of each NVIDIA card on the bus; empty where nothing drives it."""
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        try:
            is_card = read(str(device / "vendor")).strip() == NVIDIA
            is_card = is_card and read(str(device / "class")).startswith(DISPLAY_CLASSES)
        except OSError:
            continue
        if is_card:
            driver = device / "driver"
            yield driver.resolve().name if driver.is_symlink() else ""


def is_container(here: Here) -> bool:
    return (
        any((here.root / mark).exists() for mark in (".dockerenv", "run/.containerenv"))
        or "KUBERNETES_SERVICE_HOST" in here.environment
        or pid_namespace(here.root, here.pid) not in ("initial", "unknown")
    )


def lacks_runtime(here: Here) -> bool:
    """The kernel has the driver, and this container has none of its devices."""
    return is_container(here) and not any((here.root / path).exists() for path in ("dev/nvidiactl", "dev/dxg"))


def _container_without_runtime(here: Here) -> Line:
    """An image that is made for GPUs says so by NVIDIA_VISIBLE_DEVICES; others may well be meant for the CPU."""
    text = "this machine has an NVIDIA driver, and this container was started without its GPUs"
    wanted = here.environment.get("NVIDIA_VISIBLE_DEVICES", "void") not in ("void", "none", "")
    return bad("gpu-container", text, WITH_RUNTIME) if wanted else warn("gpu-container", text, WITH_RUNTIME)


def _no_session(here: Here, reason: NoSession) -> Line:
    if reason.code is None:
        return warn("gpu-driver", str(reason), "nvidia-smi -L says what the driver sees")
    if reason.code == LIBRARY_NOT_FOUND and is_container(here):
        return bad("gpu-driver", IN_WORDS[LIBRARY_NOT_FOUND][0], WITH_RUNTIME)
    said, fix = IN_WORDS.get(reason.code, (str(reason), "run nvidia-smi: it should say the same; reboot if it does"))
    return bad("gpu-driver", said, fix)


# -- CUDA_VISIBLE_DEVICES


def seen_cards(environment: Mapping[str, str], session: Session) -> list[int]:
    """Indexes of those a framework would see. CUDA stops at the first name that is none."""
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return list(range(len(session.handles)))
    found: list[int] = []
    for word in filter(None, map(str.strip, named.split(","))):
        index = _index_of(word, session)
        if index is None or index in found:
            break
        found.append(index)
    return found


def _index_of(word: str, session: Session) -> int | None:
    """By number or by the start of its UUID; a slice of a card (MIG-…) counts as some card that is there."""
    if word.isdigit():
        return int(word) if int(word) < len(session.handles) else None
    if word.startswith("MIG-"):
        return 0
    if not word.startswith("GPU-"):
        return None
    matching = [i for i, handle in enumerate(session.handles) if _uuid(handle, session).startswith(word)]
    return matching[0] if len(matching) == 1 else None


def _uuid(handle: object, session: Session) -> str:
    try:
        return text(session.nvml.nvmlDeviceGetUUID(handle))
    except session.nvml.NVMLError:
        return ""


def _hidden(environment: Mapping[str, str], session: Session) -> Iterator[Line]:
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return
    words, seen = [word.strip() for word in named.split(",") if word.strip()], seen_cards(environment, session)
    there = f"{len(session.handles)} {'GPU is' if len(session.handles) == 1 else 'GPUs are'} here"
    if not words or words[0] == "-1":
        yield warn(
            "gpu-hidden", f"CUDA_VISIBLE_DEVICES={named!r} hides every GPU; {there}", "unset CUDA_VISIBLE_DEVICES"
        )
    elif len(seen) < len(words):
        wrong = words[len(seen)]
        text = f"CUDA_VISIBLE_DEVICES={named} names {wrong}, which is not there or named twice; {there}"
        yield bad(
            "gpu-hidden", f"{text}; CUDA uses {_only(len(seen))}", "unset CUDA_VISIBLE_DEVICES, or see nvidia-smi -L"
        )


def _only(count: int) -> str:
    return f"only the {count} before it" if count else "none at all"
