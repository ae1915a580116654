"""The first visible NVIDIA card: what it has left is asked of the driver's own library (NVML) before TensorFlow takes it."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any, Optional

# TensorFlow leaves some of a card to the driver: 140,829 of the 143,156 MiB that were free on an H200.
LEFT_RATIO = 0.983


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def on_gpu() -> bool:
    """Whether TensorFlow computes on one, once it has started."""
    tf: Any = sys.modules["tensorflow"]
    return bool(tf.config.list_logical_devices("GPU"))


def free_bytes() -> Optional[int]:
    """None where there is no such library or it does not answer."""
    try:
        nvml: Any = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2():
        return None
    try:
        handle, memory = ctypes.c_void_p(), _Memory()
        if _open(nvml, handle) or nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
            return None
        return int(memory.free * LEFT_RATIO)
    finally:
        nvml.nvmlShutdown()


def _open(nvml: Any, handle: Any) -> int:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if first.isdigit():
        return int(nvml.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(handle)))
    return int(nvml.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(handle)))
