"""Under `--policy advise`: what to write where memory ran out in a loop of the script's own. Said once, at its end."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Optional, Type

from ..never_raise import guarded
from ..out_of_memory import is_out_of_memory

LINE = (
    "holdfast: out of memory; `import holdfast` and `loss = holdfast.backward(model, lambda x, y: criterion(model(x), y), "
    "x, y)` instead of `loss.backward()` train the same batch in pieces, and so does --policy protect unedited"
)


def install() -> None:
    original = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> Any:
        original(kind, error, trace)
        advise(error)

    sys.excepthook = hook


@guarded
def advise(error: BaseException) -> None:
    if is_out_of_memory(error):
        print(LINE, file=sys.stderr, flush=True)
