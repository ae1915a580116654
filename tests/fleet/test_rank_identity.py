"""Which rank a process is, by what each engine sets."""

from __future__ import annotations

import json

import pytest

from holdfast.inside import rank_identity

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "TORCHELASTIC_RUN_ID": "f00",
    "TORCHELASTIC_RESTART_COUNT": "2",
}
SLURM = {
    "SLURM_PROCID": "1",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_LOCALID": "0",
    "SLURM_JOB_ID": "77",
    "SLURM_STEP_ID": "0",
}
CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


@pytest.mark.parametrize(
    ("environment", "engine", "rank", "size", "job"),
    [
        pytest.param(TORCHRUN, "torchrun", 3, 4, "f00", id="torchrun"),
        pytest.param(
            {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"},
            "torchrun", 3, 4, "n1:29500", id="torchrun without a run id",
        ),
        pytest.param(SLURM, "slurm", 1, 2, "77.0", id="srun"),
        pytest.param({**SLURM, **TORCHRUN}, "torchrun", 3, 4, "f00", id="torchrun within a job of Slurm's"),
        pytest.param(
            {"RANK": "0", "WORLD_SIZE": "2", "RAY_JOB_ID": "02", "MASTER_ADDR": "n1", "MASTER_PORT": "1"},
            "ray", 0, 2, "n1:1", id="Ray Train",
        ),
        pytest.param(
            {"RANK": "1", "WORLD_SIZE": "2", "KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_NAME": "bert"},
            "kubernetes", 1, 2, "bert", id="a pod per rank",
        ),
        pytest.param({"JOB_COMPLETION_INDEX": "2", "JOBSET_NAME": "llm"}, "kubernetes", 2, None, "llm", id="JobSet"),
        pytest.param(
            {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}})},
            "tf.distribute", 2, 3, "a:1", id="tf.distribute",
        ),
        pytest.param(
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "prterun-1"},
            "openmpi", 1, 2, "prterun-1", id="mpirun",
        ),
    ],
)  # fmt: skip
def test_the_rank_is_read_from_what_the_engine_sets(
    environment: dict[str, str], engine: str, rank: int, size: int | None, job: str
) -> None:
    found = rank_identity.of(environment)

    assert found is not None
    assert (found["engine"], found["rank"], found["world_size"], found["job"]) == (engine, rank, size, job)


def test_a_restart_by_the_engine_is_counted() -> None:
    found = rank_identity.of(TORCHRUN)

    assert found is not None
    assert (found["restart"], found["local_rank"]) == (2, 1)


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="a script of its own"),
        pytest.param({"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "f00"}, id="one rank"),
        pytest.param({"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, id="the script given to sbatch"),
        pytest.param({"RANK": "first", "WORLD_SIZE": "2"}, id="no number"),
        pytest.param({"TF_CONFIG": "{"}, id="a broken TF_CONFIG"),
        pytest.param(
            {"TF_CONFIG": json.dumps({"cluster": CLUSTER, "task": {"type": "ps", "index": 0}})}, id="a parameter server"
        ),
    ],
)
def test_who_trains_alone_is_no_rank(environment: dict[str, str]) -> None:
    assert rank_identity.of(environment) is None
