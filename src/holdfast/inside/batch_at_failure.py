"""What the arrays at hand were when an error ended the script: names, shapes, types, and of whole numbers the range.

Looked at once, when all is over: a batch that is shaped otherwise than those before it, or a label that is too large, is told by
what the script's own variables hold then. Nothing is waited for: what lies on a GPU is told without its values.
"""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any, Dict, Iterator, List, Optional, Type

from .never_raise import guarded
from .numerics.user_lines import is_users, line_of
from .telemetry import Recorder

EVENT = "data.at_failure"
FRAMES, VARIABLES = 3, 8  # of the script's own, innermost first
MOST_VALUES = 20_000_000  # that are looked through for their range: some 20 ms


def install(recorder: Recorder) -> None:
    original = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> Any:
        if issubclass(kind, Exception):
            tell(recorder, trace)
        return original(kind, error, trace)

    sys.excepthook = hook


@guarded
def tell(recorder: Recorder, trace: Optional[TracebackType]) -> None:
    frames = list(_users(trace))[::-1][:FRAMES]
    variables: Dict[int, Dict[str, Any]] = {}
    for frame in frames:
        for name, value in list(frame.f_locals.items()):
            if len(variables) < VARIABLES and id(value) not in variables and _is_array(value):
                variables[id(value)] = {"name": name, **described(value)}
    if not variables:
        return
    line = line_of(frames[0])
    about = {"line": line[0], "code": line[1]} if line is not None else {}
    recorder.event(
        EVENT, step=recorder.steps + 1, epoch=recorder.epoch_number, variables=list(variables.values()), **about
    )


def _users(trace: Optional[TracebackType]) -> Iterator[FrameType]:
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            yield trace.tb_frame
        trace = trace.tb_next


def _is_array(value: Any) -> bool:
    module = type(value).__module__.partition(".")[0]
    return (
        module in ("numpy", "torch", "tensorflow", "jax", "jaxlib")
        and hasattr(value, "shape")
        and hasattr(value, "dtype")
    )


def described(value: Any) -> Dict[str, Any]:
    dtype = str(getattr(value.dtype, "name", value.dtype)).rpartition(".")[2]
    told: Dict[str, Any] = {"shape": _sizes(value.shape), "dtype": dtype}
    if dtype.startswith(("int", "uint")):
        told.update(_range(value))
    return told


def _sizes(shape: Any) -> List[int]:
    return [int(size) for size in shape][:6] if getattr(shape, "rank", 0) is not None else []


def _range(value: Any) -> Dict[str, int]:
    """And the row of the largest value: where values are rows, that is its place in the batch, or in the data."""
    numpy: Any = sys.modules.get("numpy")
    device = str(getattr(value, "device", "cpu")).lower()
    if numpy is None or "cuda" in device or "gpu" in device or "tpu" in device:
        return {}
    array = numpy.asarray(value.detach() if hasattr(value, "detach") else value)
    if not 0 < array.size <= MOST_VALUES:
        return {}
    row = int(array.argmax()) // max(1, array.size // len(array)) if array.ndim else 0
    return {"min": int(array.min()), "max": int(array.max()), "row_of_max": row}
