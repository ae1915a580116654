"""Where the job is started: by a person at a terminal, by a scheduler, in a container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SCHEDULERS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "SGE_TASK_ID": "Grid Engine",
    "FLUX_JOB_ID": "Flux",
    "_CONDOR_SLOT": "HTCondor",
    "OAR_JOB_ID": "OAR",
    "COBALT_JOBID": "Cobalt",
    "AWS_BATCH_JOB_ID": "AWS Batch",
    "KUBERNETES_SERVICE_HOST": "Kubernetes",
}
# Parts of their cgroup paths, for a job that was started without their variables.
SCHEDULED = ("/slurm", "/pbs_jobs", "/pbspro", "/lsf/", "/htcondor", "/condor_", "/kubepods", "/oar/")
CONTAINED = (
    "/docker",
    "/libpod-",
    "/crio-",
    "/cri-containerd",
    "/containerd/",
    "/lxc",
    "/machine.slice/",
    "/buildkit/",
)
MARKS = (".dockerenv", "run/.containerenv", "run/systemd/container", ".singularity.d")


def scheduler(environment: Mapping[str, str], root: Path = Path("/")) -> str:
    """The scheduler that started the job; empty where there is none."""
    named = next((name for variable, name in SCHEDULERS.items() if environment.get(variable)), "")
    return named or ("a scheduler" if _inside(SCHEDULED, root) else "")


def in_a_container(environment: Mapping[str, str], root: Path = Path("/")) -> bool:
    marked = any((root / mark).exists() for mark in MARKS)
    return marked or bool(environment.get("container")) or _inside(CONTAINED, root)


def at_a_terminal() -> bool:
    """True also where the output goes to a file: any of the three standard descriptors counts."""
    return any(os.isatty(fd) for fd in (0, 1, 2))


def _inside(groups: tuple[str, ...], root: Path) -> bool:
    try:
        ours = (root / "proc/self/cgroup").read_text()
    except OSError:
        return False
    return any(group in ours for group in groups)
