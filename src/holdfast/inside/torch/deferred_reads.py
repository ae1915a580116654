"""Values of a step that live on a device: prepared beside it, read when the device is done with them; never a sync."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from ..telemetry import Recorder, now
from . import seams

NORM_SHARE = 0.001  # of the run's time: a norm that takes 5 ms is taken every 5 s
CPU_NORM_LIMIT = 200_000_000  # parameters; beyond it even one norm is felt
LABEL_BYTES = 14  # what a value's name has left beside "gradient_norm[]" in the ring, with room to spare
GROUPS = 16  # norms told apart; a model with more parts has its first ones told

Read = Callable[[], Optional[float]]


def reading(torch: Any, tensor: Any) -> Optional[Read]:
    """How to read a scalar later. On a GPU the copy is begun now, behind the work that makes the value."""
    kind = tensor.device.type
    if kind == "cpu":
        value = float(tensor)  # at once: the user may change it in place
        return lambda: value
    if kind != "cuda" or torch.cuda.is_current_stream_capturing():  # elsewhere a copy may be a sync
        return None
    with torch.cuda.device(tensor.device):
        copy = tensor.detach().to("cpu", non_blocking=True)
        done = torch.cuda.Event()
        done.record()
    return lambda: float(copy) if done.query() else None


class Norms:
    """The gradient's norm as the optimizer gets it: clipped where the user clips, unscaled where AMP scales."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self.next_at = 0.0
        self.taken: Optional[Dict[str, Read]] = None

    def take(self, optimizer: Any) -> None:
        began = now()
        if not self._recorder.wants("gradient_norm"):
            self.next_at = began + 0.05
            return
        with self._torch.no_grad():
            self.taken = self._norms(optimizer)
        self.next_at = began + max(0.5, (now() - began) / NORM_SHARE)

    def ready(self) -> Optional[Dict[str, Read]]:
        """What was taken for the step that is over."""
        ready, self.taken = self.taken, None
        return ready

    def _norms(self, optimizer: Any) -> Dict[str, Read]:
        torch = self._torch
        groups = _gradients(torch, optimizer)
        first = next(iter(groups.values()), None)
        if first is None or (first[0].is_cuda and torch.cuda.is_current_stream_capturing()):
            return {}
        if not first[0].is_cuda and sum(each.numel() for part in groups.values() for each in part) > CPU_NORM_LIMIT:
            return {}
        parts = {label: _norm(torch, gradients) for label, gradients in groups.items()}
        whole = torch.linalg.vector_norm(torch.stack([part.to(first[0].device) for part in parts.values()]))
        named = {"gradient_norm": whole}
        if len(parts) > 1:
            named.update({f"gradient_norm[{label}]": part for label, part in list(parts.items())[:GROUPS]})
        scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer unscales in its own kernel
        found = {}
        for name, value in named.items():
            read = reading(torch, value if scale is None else value / scale.to(value.device))
            if read is not None:
                found[name] = read
        return found


def _norm(torch: Any, gradients: List[Any]) -> Any:
    device = gradients[0].device
    half = any(each.dtype is torch.float16 for each in gradients)  # a norm beyond 65504 would be infinite in it
    norms = None if half else seams.norms_of(torch, gradients)
    if norms is None:
        norms = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in gradients]
    return torch.linalg.vector_norm(torch.stack([each.to(device, torch.float32) for each in norms]))


def _gradients(torch: Any, optimizer: Any) -> Dict[str, List[Any]]:
    """By the model's parts where the optimizer was given names, by parameter group elsewhere.

    Plain dense tensors on one device only: a norm of a sharded one (DTensor) would be a collective, and not all ranks
    take it at the same step.
    """
    found: Dict[str, List[Any]] = {}
    devices = set()
    for index, group in enumerate(optimizer.param_groups):
        names = group.get("param_names") or ()
        for position, parameter in enumerate(group["params"]):
            gradient = parameter.grad
            if gradient is None:
                continue
            if type(gradient) is not torch.Tensor or gradient.layout is not torch.strided:
                return {}
            devices.add(gradient.device)
            label = names[position].split(".")[0] if position < len(names) else str(index)
            found.setdefault(label[:LABEL_BYTES], []).append(gradient)
    return found if len(devices) == 1 and next(iter(devices)).type in ("cpu", "cuda") else {}


def offer_memory(torch: Any, recorder: Recorder, device: Any) -> None:
    """What PyTorch's allocator holds on the GPU that trains; never the first to touch CUDA."""
    if device.type != "cuda" or not torch.cuda.is_initialized():
        return
    now_bytes, peak_bytes = torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    recorder.offer("allocated_bytes", lambda: float(now_bytes))
    recorder.offer("allocated_peak_bytes", lambda: float(peak_bytes))
    reserved_bytes = torch.cuda.memory_reserved(device)
    recorder.offer("reserved_bytes", lambda: float(reserved_bytes))


def gpus(torch: Any, device: Any) -> Tuple[str, Optional[int]]:
    """What this PyTorch was built for, and how many GPUs it could use; asked of NVML, which does not start CUDA.

    `torch.cuda.is_available()` would: after it a forked child can no longer use the GPU.
    """
    built = "cuda" if torch.version.cuda else "hip" if getattr(torch.version, "hip", None) else "cpu"
    if device.type == "cuda":
        return built, None
    if built != "cuda":
        return built, 0 if built == "cpu" else None
    found = seams.gpu_count(torch)
    return built, found if found is not None and found >= 0 else None
