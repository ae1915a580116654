"""Which rank of several this process is, by what the engine that started it has set.

Read by the supervisor of its own environment, too: `srun holdfast run …`, a pod per rank.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any, Dict, Mapping, Optional, Tuple

# The first engine whose rank and size are both there: inside a Slurm job, torchrun's ranks are the ones that train.
# Each with the names of: rank, size, local rank, the job, how often it was started again.
BY_NAMES: Tuple[Tuple[str, Tuple[str, str, str, str, str]], ...] = (
    ("torchrun", ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")),
    ("slurm", ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT")),
    ("openmpi", ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE", "")),
    ("mpi", ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "HYDI_CONTROL_FD", "")),
)
STATIC = ("", "none")  # torchrun's run id where nobody gave one
RAY = ("RAY_RAYLET_PID", "RAY_JOB_ID")
POD = "KUBERNETES_SERVICE_HOST"


def of(environment: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """None for a process that is alone. `job` is the same for all ranks that belong together, "" where nothing tells."""
    found = _by_names(environment) or _of_tensorflow(environment) or _of_an_indexed_job(environment)
    if found is None or found["world_size"] == 1:
        return None
    found["host"] = environment.get("NODE_NAME") or socket.gethostname()
    return found


def _by_names(environment: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    for engine, (rank, size, local, job, again) in BY_NAMES:
        if _number(environment, rank) is None or _number(environment, size) is None:
            continue
        told = environment.get(job, "")
        who = engine if told or engine != "torchrun" else _who_else_sets_rank(environment)
        if told in STATIC:
            told = _of_the_pod(environment) or _address(environment)
        if engine == "slurm":
            told = f"{told}.{environment.get('SLURM_STEP_ID', '0')}"
        return {
            "engine": who,
            "rank": _number(environment, rank),
            "world_size": _number(environment, size),
            "local_rank": _number(environment, local),
            "local_size": _number(environment, "LOCAL_WORLD_SIZE"),
            "job": told,
            "restart": _number(environment, again) or 0,
        }
    return None


def _who_else_sets_rank(environment: Mapping[str, str]) -> str:
    if any(name in environment for name in RAY):
        return "ray"
    return "kubernetes" if POD in environment else "environment"


def _of_tensorflow(environment: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """TF_CONFIG lists every address by kind; the chief is the first worker."""
    try:
        told = json.loads(environment.get("TF_CONFIG", ""))
        cluster, task = told["cluster"], told["task"]
        trains = [
            (kind, index) for kind in ("chief", "master", "worker") for index in range(len(cluster.get(kind, ())))
        ]
        rank = trains.index((str(task["type"]), int(task["index"])))
        addresses = [str(address) for kind in ("chief", "master", "worker") for address in cluster.get(kind, ())]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    about = {"engine": "tf.distribute", "rank": rank, "world_size": len(trains), "local_rank": None}
    return {**about, "job": _of_the_pod(environment) or addresses[0], "restart": 0}


def _of_an_indexed_job(environment: Mapping[str, str]) -> Optional[Dict[str, Any]]:
    """Kubernetes numbers the pods of an indexed Job or a JobSet, and does not tell them how many there are."""
    rank = _number(environment, "JOB_COMPLETION_INDEX")
    if rank is None:
        return None
    size = _number(environment, "REPLICAS") or _number(environment, "JOB_PARALLELISM")
    about = {"engine": "kubernetes", "rank": rank, "world_size": size, "local_rank": None}
    return {**about, "job": _of_the_pod(environment), "restart": 0}


def _of_the_pod(environment: Mapping[str, str]) -> str:
    return environment.get("JOBSET_NAME") or environment.get("JOB_NAME", "")


def _address(environment: Mapping[str, str]) -> str:
    host, port = environment.get("MASTER_ADDR", ""), environment.get("MASTER_PORT", "")
    return f"{host}:{port}" if host and port else ""


def _number(environment: Mapping[str, str], name: str) -> Optional[int]:
    try:
        return int(environment.get(name, ""))
    except ValueError:
        return None


class Joining:
    """Tells once which rank this process is: at the start, or as soon as it has joined a group of processes."""

    EVERY_S = 1.0  # the environment is looked at: it takes 20 µs, and ten times that in a loop of short steps
    FOR_S = 200.0  # a process that has trained so long without a group trains alone

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._first_look_at = self._due = 0.0
        self._told = False
        self._tell(of(os.environ))

    def look(self, moment: float) -> None:
        if self._told:
            return
        self._first_look_at = self._first_look_at or moment
        if moment - self._first_look_at > self.FOR_S:
            return
        group = _of_the_group()
        if group is not None or moment >= self._due:
            self._due = moment + self.EVERY_S
            self._tell(of(os.environ) or group)

    def _tell(self, found: Optional[Dict[str, Any]]) -> None:
        if found is not None:
            self._told = True
            self._recorder.event("rank.joined", **found)

    def leave(self) -> None:
        """At the interpreter's end: by itself, or for an exception that nothing handled."""
        if not self._told:
            return
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        about: Dict[str, Any] = {"steps": self._recorder.steps}
        if error is not None:
            about["raised"] = f"{type(error).__name__}: {error}"[:400]
            about["where"] = _where(error)
        self._recorder.event("rank.left", **about)


def _where(error: BaseException) -> str:
    """The innermost frame."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}"


def _of_the_group() -> Optional[Dict[str, Any]]:
    """Ranks that the script has started itself: only the framework knows their numbers."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    size = int(distributed.get_world_size())
    if size < 2:
        return None
    about = {"engine": "torch", "rank": int(distributed.get_rank()), "world_size": size, "local_rank": None}
    return {**about, "job": _address(os.environ), "restart": 0, "host": socket.gethostname()}
