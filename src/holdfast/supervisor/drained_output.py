"""Where the script's output goes once the relay has died."""

from __future__ import annotations

import contextlib
import os

from holdfast.supervisor.run_spec import RunSpec

DRAINED_LIMIT_BYTES = 256 << 20  # of output.log


class DrainedOutput:
    """Output of the script after the relay has died."""

    def __init__(self, spec: RunSpec) -> None:
        self.path = str(spec.directory / "output.log") if spec.directory else os.devnull
        self._left = DRAINED_LIMIT_BYTES
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            self._fd = os.open(os.devnull, os.O_WRONLY)

    def write(self, data: bytes) -> None:
        if self._left > 0:
            self._left -= len(data)
            with contextlib.suppress(OSError):  # a full disk stops the log, never the script
                os.write(self._fd, data)
