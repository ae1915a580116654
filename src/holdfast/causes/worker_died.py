from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, near, rule, says, shell, torch
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
            says(
                "TerminatedWorkerError",
                (
                    "joblib 1.5.3",
                    "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor was unexpectedly terminated. This could be caused by a segmentation fault while calling the function or by an excessive memory usage causing the Operating System to kill the worker.\n",
                ),
            ),
            says(
                "process(?: pool was)? terminated abruptly",
                (
                    "CPython 3.11.7",
                    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",
                ),
                (
                    "CPython 3.11.7",
                    "concurrent.futures.process.BrokenProcessPool: A child process terminated abruptly, the process pool is not usable anymore",
                ),
                near(
                    "joblib 1.5.3",
                    "joblib.externals.loky.process_executor.BrokenProcessPool: A task has failed to un-serialize. Please ensure that the arguments of the function are all picklable.",
                ),
            ),
        ),
        rule(
            0.7,
            says(
                "background workers are no longer alive",
                (
                    "batchgenerators 0.25",
                    "RuntimeError: One or more background workers are no longer alive. Exiting. Please check the print statements above for the actual error message",
                ),
            ),
            says(
                "A worker process managed by the executor was unexpectedly terminated",
                (
                    "joblib 1.5.3",
                    "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor was unexpectedly terminated. This could be caused by a segmentation fault while calling the function or by an excessive memory usage causing the Operating System to kill the worker.\n",
                ),
            ),
            says("worker died", ("transformers 5.22.2", "CBWorkerDeadError: CB worker died during request 3: 3")),
            says(
                "actor died unexpectedly",
                ("ray 2.10", "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."),
                near(
                    "ray 2.10",
                    "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::Counter.__init__() (pid=4242, ip=10.0.0.7)",
                ),
            ),
        ),
        # The other end of a pipe on this machine: that process is gone.
        rule(
            0.85,
            says(
                "^",
                (
                    "CPython 3.11.7",
                    'Traceback (most recent call last):\n  File "/home/user/train.py", line 41, in <module>\n    batch = reader.recv()\n  File "/usr/lib/python3.11/multiprocessing/connection.py", line 250, in recv\n    buf = self._recv_bytes()\n          ^^^^^^^^^^^^^^^^^^\n  File "/usr/lib/python3.11/multiprocessing/connection.py", line 430, in _recv_bytes\n    buf = self._recv(4)\n          ^^^^^^^^^^^^^\n  File "/usr/lib/python3.11/multiprocessing/connection.py", line 399, in _recv\n    raise EOFError\nEOFError',
                ),
            ),
            types=LOST_TYPES + " EOFError BrokenPipeError",
            frames=LOCAL_PIPE,
        ),
    ),
    lines=(
        rule(
            0.55,
            says(
                "could be because a worker has died",
                (
                    "keras 2.3",
                    "/usr/lib/python3.7/site-packages/keras/utils/data_utils.py:616: UserWarning: The input 0 could not be retrieved. It could be because a worker has died.",
                ),
            ),
            says("exit codes of the workers are", ("joblib 1.5.3", "The exit codes of the workers are {EXIT(1)}")),
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
