"""All of PyTorch's, NumPy's and Python's global random state, as values that can be kept and put back."""

from __future__ import annotations

from typing import Any, Dict

from .. import randomness


def capture_of_host(torch: Any) -> Dict[str, Any]:
    return {**randomness.capture(), "torch": torch.get_rng_state().numpy().tobytes()}


def capture(torch: Any) -> Dict[str, Any]:
    state = capture_of_host(torch)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = [one.numpy().tobytes() for one in torch.cuda.get_rng_state_all()]
    return state


def restore(torch: Any, state: Dict[str, Any]) -> None:
    randomness.restore(state)
    torch.set_rng_state(_bytes(torch, state["torch"]))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([_bytes(torch, one) for one in state["cuda"]])


def _bytes(torch: Any, state: bytes) -> Any:
    return torch.frombuffer(bytearray(state), dtype=torch.uint8)
