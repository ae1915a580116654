from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell, torch, words

TIMEOUT = (
    says("collective operation timeout", ("torch 2.13.0", "caught collective operation timeout")),
    says(
        r"ran for \d+ milliseconds before timing out",
        (
            "torch 2.5",
            "WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=131072000, NumelOut=131072000, Timeout(ms)=600000) ran for 600081 milliseconds before timing out.",
        ),
    ),
    says(
        r"Timed out waiting \d+ms for (?:recv|send)",
        ("gloo 2025-05-16", "Timed out waiting 3ms for recv operation to complete"),
    ),
    says("failed to pass monitoredBarrier", ("torch 2.13.0", "failed to pass monitoredBarrier in")),
    says(
        "[Bb]arrier timed out",
        (
            "jaxlib 0.10.2",
            "Barrier timed out. Id: dense. This usually happens because a task triggered the barrier too early or too slowly. Please look at the task logs (both timed out and first task) to debug further.",
        ),
    ),
    says("Timeout waiting for key", ("torch 2.13.0", "Timeout waiting for key:")),
    "Timed out receiving the shared seed",
    says(
        "stopped sending heartbeats",
        ("jaxlib 0.10.2", "The following tasks are unhealthy (stopped sending heartbeats):"),
    ),
    says(
        r"Timed out after \d+ seconds waiting for clients",
        ("torch 2.13.0", "DistStoreError: Timed out after 2 seconds waiting for clients. 1/2 clients joined."),
    ),
    says(
        "Timed out initializing process group",
        ("torch 2.13.0", "Timed out initializing process group in store based barrier on rank"),
    ),
    says(r"wait timeout after \d+ ?ms", ("torch 2.13.0", "wait timeout after 3ms, keys: 3")),
    says(
        "submitted to be reduced, gathered or broadcasted by subset of ranks",
        (
            "horovod v0.28.1",
            "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 3 seconds. This may indicate that different ranks are trying to submit different tensors or that only subset of ranks is submitting tensors, which will cause deadlock. 3Missing ranks:",
        ),
    ),
    "Stalled (?:ranks|tensor)",
    says("[Ss]ocket Timeout", ("torch 2.13.0", "Socket Timeout")),
    r"store->get\('?\S{0,40}'?\) got error(?!: Connection)",
    r"Connected \d+/\d+ ranks",
    says(
        "NCCL.{0,60}timed ?out",
        (
            "a log shown in public",
            "[E ProcessGroupNCCL.cpp:488] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        ),
    ),
    r"NCCL \w{0,20} ?timeout (?:error|after|occurred|detected)",
    says(
        "heartbeat (?:monitor )?(?:timed out|timeout)",
        (
            "jaxlib 0.10.2",
            "heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly. Check the task logs for an earlier error or scheduler events (e.g. preemption, eviction) to debug further.",
        ),
    ),
    "DEADLINE_EXCEEDED",
    r"watchdog got stuck for \d+ seconds",
    "ERROR in coordination service",
    "[Cc]oordination service agent (?:is )?in error",
    says(
        "error from (?:the )?coordination service",
        (
            "jaxlib 0.10.2",
            "Polled an error from coordination service (this can be an error from this or another task).",
        ),
    ),
    r"calling /tensorflow\.CoordinationService",
    says("cluster registration failed", ("jaxlib 0.10.2", "Cluster registration failed with error:")),
    says(
        "JAX distributed service detected",
        (
            "jaxlib 0.10.2",
            "Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details. Disable Python buffering, i.e. `python -u`, to be sure to see all the previous output. absl::Status:",
        ),
    ),
    says("Wait_for_all_tasks_to_register", ("xla 2026-08-22", "[Init]Wait_for_all_tasks_to_register")),
    says(
        r"backend initialization is taking more than [\d.]+ seconds\. Did you run your code on all",
        (
            "jax 0.10.2",
            "TPU backend initialization is taking more than 3 seconds. Did you run your code on all TPU hosts? See https://docs.jax.dev/en/latest/multi_process.html for more information.",
        ),
    ),
    says(
        r"waiting for `.{0,200}` for \d+ seconds and may be stuck",
        (
            "jaxlib 0.10.2",
            "[id=3] This thread has been waiting for `dense` for 3 seconds and may be stuck. All 3 threads joined the rendezvous, however the leader has not marked the rendezvous as completed. Leader can be deadlocked inside the rendezvous callback.",
        ),
    ),
    "not all of them arrived on time",
    says(
        "[Tt]ermination timeout for .{0,200}exceeded",
        (
            "jaxlib 0.10.2",
            "[id=3] Termination timeout for `dense` of 3 seconds exceeded. Exiting to ensure a consistent program state. Expected 3 threads to join the rendezvous, but only 3 of them arrived on time.",
        ),
    ),
    "RendezvousTimeout",
    "HorovodTimeout",
)
CAUSE = CauseRecord(
    id="collective-timeout",
    family="ranks",
    title="Ranks waited in vain for one another",
    meaning="One rank did not come to the collective operation the others were in: it is stuck, slower, or took another way. The others give up after the timeout.",
    sure="The rank that is missing, and its own last step or stack.",
    echo=True,
    recipes=(
        words("Look at the rank that did not come", "compare the last line or stack of every rank"),
        torch(
            "More patience, where one rank rightly takes longer",
            "dist.init_process_group(timeout=datetime.timedelta(hours=2))",
        ),
        shell("Let NCCL tell more", "NCCL_DEBUG=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun train.py"),
    ),
    exceptions=(rule(0.86, *TIMEOUT),),
    lines=(
        # The watchdog ends with whatever went wrong on its rank, and what that was may stand behind it.
        # The watchdog ends with whatever went wrong on its rank, and what that was may stand behind it.
        rule(0.85, *TIMEOUT),
        # The watchdog ends with whatever went wrong on its rank, and what that was may stand behind it.
        rule(0.52, "watchdog thread terminated with exception"),
    ),
)
