"""Tells the engine that started the command why it failed, in the engine's own way, so that it stands where people look first.

torchrun reads an error file of each rank, and prints what is in it; Kubernetes shows a container's termination message in
`kubectl describe pod`. What the script has written there itself stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
POD = "KUBERNETES_SERVICE_HOST"
TERMINATION_LOG = Path("/dev/termination-log")
TERMINATION_BYTES = 4096  # more is cut by the kubelet, at the front


def wanted(environment: Mapping[str, str], termination_log: Path = TERMINATION_LOG) -> bool:
    return bool(environment.get(ERROR_FILE)) or _in_a_pod(environment, termination_log)


def carry_out(
    title: str,
    evidence: Sequence[str],
    at: float,
    environment: Mapping[str, str],
    termination_log: Path = TERMINATION_LOG,
) -> list[str]:
    """`at`: when it failed. Returns what became of it, for the record; an engine that cannot be told costs nothing else."""
    told = []
    if environment.get(ERROR_FILE):
        told.append(f"torchrun's error file: {_error_file(Path(environment[ERROR_FILE]), title, evidence, at)}")
    if _in_a_pod(environment, termination_log):
        words = "\n".join((title, *(f"- {line}" for line in evidence))).encode("utf-8", "replace")
        told.append(f"the pod's termination message: {_written(termination_log, words[:TERMINATION_BYTES])}")
    return told


def _in_a_pod(environment: Mapping[str, str], termination_log: Path) -> bool:
    """The kubelet puts that file there; a container that runs elsewhere may have one of that name."""
    return POD in environment and termination_log.is_file()


def _error_file(file: Path, title: str, evidence: Sequence[str], at: float) -> str:
    """As `torch.distributed.elastic.multiprocessing.errors` writes it: of several ranks the earliest is the root cause."""
    # Its report shows what stands in place of a traceback, and not the message.
    about = {"py_callstack": "\n".join((f"holdfast: {title}", *evidence)), "timestamp": str(int(at))}
    return _written(file, json.dumps({"message": {"message": f"holdfast: {title}", "extraInfo": about}}).encode())


def _written(file: Path, words: bytes) -> str:
    try:
        if file.exists() and file.stat().st_size:
            return "the script has written it"
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as opened:
            opened.write(words)
    except OSError as error:
        return f"not written: {error.strerror}"
    return "written"
