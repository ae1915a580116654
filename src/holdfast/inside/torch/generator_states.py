"""The state of random generators that objects of the user's hold."""

from __future__ import annotations

import random
from typing import Any, Dict


def generators_of(torch: Any, owner: Any) -> Dict[str, Any]:
    """Random generators that it holds itself."""
    found = {name: state_of(torch, value) for name, value in getattr(owner, "__dict__", {}).items()}
    return {name: state for name, state in found.items() if state is not None}


def put_generators(torch: Any, owner: Any, states: Dict[str, Any]) -> None:
    for name, state in states.items():
        put_state(torch, vars(owner).get(name), state)


def state_of(torch: Any, value: Any) -> Any:
    """Of a random generator; None of anything else."""
    if isinstance(value, torch.Generator):
        return value.get_state().numpy().tobytes()
    if hasattr(value, "bit_generator"):
        return value.bit_generator.state
    if type(value).__name__ == "RandomState":
        return value.get_state()
    return value.getstate() if isinstance(value, random.Random) else None


def put_state(torch: Any, generator: Any, state: Any) -> bool:
    """False where it is no random generator."""
    if isinstance(generator, torch.Generator):
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    elif type(generator).__name__ == "RandomState":
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        return False
    return True
