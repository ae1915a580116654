from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, rule, says, shell, torch
from holdfast.causes.shared.words import LOCAL_PIPE, LOST_TYPES

DIED = (
    r"(?:child|sub-?|worker|helper|loader) ?process(?:es)?\b.{0,40}\b(?:abruptly|unexpectedly|died|was killed|crashed)"
)
CAUSE = CauseRecord(
    id="worker-died",
    family="process",
    title="A worker process died",
    meaning="A helper process of the run ended, and took the run with it. Its own reason stands elsewhere: in its output or in the kernel's log.",
    sure="The trainer names the worker and how it ended.",
    symptom=True,
    echo=True,
    restart=RestartAdvice(RestartKind.ONCE, "a worker process died"),
    recipes=(
        torch("Run without workers to see its own error", "DataLoader(dataset, num_workers=0)"),
        shell("Was it killed for memory?", "dmesg | grep -iE 'killed process|out of memory' | tail"),
    ),
    exceptions=(
        rule(
            0.76,
            says(
                DIED,
                (
                    "tensorflow 2.21.0",
                    "RuntimeError: Unexpected EOF. Worker process may have died. Please report a bug",
                ),
            ),
        ),
        rule(
            0.78,
            says(
                r"(?:DataLoader )?worker \(pid\(?s?\)?[^\n]{0,40}(?:exited unexpectedly|killed by signal)",
                (
                    "torch 2.13.0",
                    "RuntimeError: DataLoader worker (pid 8578) is killed by signal: Segmentation fault. ",
                ),
            ),
            "BrokenProcessPool",
            "TerminatedWorkerError",
            "process pool was terminated abruptly",
        ),
        rule(
            0.7,
            "background workers are no longer alive",
            "A worker process managed by the executor was unexpectedly terminated",
            says("worker died", ("transformers 5.22.2", "CBWorkerDeadError: CB worker died during request 3: 3")),
            "WorkerCrashedError",
            "ActorDiedError",
            "actor died unexpectedly",
        ),
        # The other end of a pipe on this machine: that process is gone.
        rule(0.85, "^", types=LOST_TYPES + " EOFError BrokenPipeError", frames=LOCAL_PIPE),
    ),
    lines=(
        rule(
            0.55,
            "could be because a worker has died",
            says("exit codes of the workers are", ("joblib 1.5.3", "The exit codes of the workers are 3")),
            says(
                "DataLoader worker .{0,60}(?:killed|exited unexpectedly)",
                (
                    "torch 2.13.0",
                    "RuntimeError: DataLoader worker (pid 8578) is killed by signal: Segmentation fault. ",
                ),
            ),
            says(
                "worker died unexpectedly",
                (
                    "ray ray-0.7.0",
                    "The worker died unexpectedly while executing this task. Check python-core-worker-*.log files for more information.",
                ),
            ),
            says(
                "A worker died or was killed",
                ("ray ray-0.7.0", "A worker died or was killed while executing a task by an"),
            ),
        ),
        rule(
            0.55,
            says(
                "has been shut down. This was caused by an exception on one of the ranks",
                (
                    "horovod v0.28.1",
                    "Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished execution. If the shutdown was caused by an exception, you should see the exception in the log before the first shutdown message.",
                ),
            ),
        ),
    ),
    last_frames=((0.62, r"_error_if_any_worker_fails\(|_try_get_(?:data|batch)\b"),),
)
