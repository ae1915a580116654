from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, shell, torch

NO_THREADS = (
    says("can't start new thread", ("CPython 3.11.7", "RuntimeError: can't start new thread")),
    says(
        r"pthread_create\(?\)?[^\n]{0,60}(?:failed|temporarily unavailable)",
        (
            "numpy 2.4.6",
            "OpenBLAS blas_thread_init: pthread_create failed for thread 5 of 64: Resource temporarily unavailable",
        ),
    ),
    says(
        r"RLIMIT_NPROC \d+ current", ("numpy 2.4.6", "OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 4096 max")
    ),
    says(
        "fork rejected by pids controller",
        (
            "Linux 5.14 kernel log",
            "cgroup: fork rejected by pids controller in /user.slice/user-1000.slice/session-3.scope",
        ),
    ),
    says(
        "Thread creation failed",
        ("libgomp of torch 2.13.0", "libgomp: Thread creation failed: Resource temporarily unavailable"),
    ),
    says(
        r"fork[^\n]{0,60}temporarily unavailable",
        ("bash 5 with glibc 2.42", "-bash: fork: retry: Resource temporarily unavailable"),
    ),
    says(
        r"std::system_error[\s\S]{0,80}Resource temporarily unavailable",
        (
            "C++ runtime (libstdc++)",
            "terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily unavailable",
        ),
    ),
    says(
        "unable to allocate necessary resources for OMP thread",
        ("LLVM OpenMP runtime", "OMP: Error #34: System unable to allocate necessary resources for OMP thread:"),
    ),
    says("unable to create new native thread", ("Java 8", "OutOfMemoryError: unable to create new native thread")),
)
CAUSE = CauseRecord(
    id="too-many-processes",
    family="limits",
    title="No more threads or processes may be started",
    meaning="The user's, the container's or the cgroup's limit on processes and threads is reached. Frameworks start a thread per core and more for their input.",
    sure="Starting a thread or a process was refused by the system.",
    recipes=(
        keras(
            "Fewer threads",
            "tf.config.threading.set_intra_op_parallelism_threads(4)\ntf.config.threading.set_inter_op_parallelism_threads(2)",
        ),
        torch("Fewer threads and workers", "torch.set_num_threads(4)  # and fewer num_workers"),
        shell("Fewer threads in every library", "OMP_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4 python train.py"),
        shell("Raise the limit", "ulimit -u 65536   # container: docker run --pids-limit=4096"),
    ),
    exceptions=(
        rule(0.92, *NO_THREADS),
        rule(
            0.85,
            says(
                r"\[Errno 11\]",
                (
                    "CPython 3.11.7 with glibc 2.42, translated",
                    "BlockingIOError: [Errno 11] Die Ressource ist zur Zeit nicht verfügbar",
                ),
            ),
            types="BlockingIOError OSError system_error",
        ),
    ),
    lines=(
        rule(0.9, *NO_THREADS),
        rule(
            0.85,
            says(
                "fork: (?:retry: )?Resource temporarily unavailable",
                ("bash 5 with glibc 2.42", "-bash: fork: retry: Resource temporarily unavailable"),
            ),
        ),
    ),
)
