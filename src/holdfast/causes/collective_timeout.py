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
        (
            "gloo 2025-05-16",
            "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
        ),
    ),
    says("failed to pass monitoredBarrier", ("torch 2.13.0", "failed to pass monitoredBarrier in")),
    says(
        "[Bb]arrier timed out",
        (
            "jaxlib 0.10.2",
            "Barrier timed out. Id: PjRT_Client_Connect. This usually happens because a task triggered the barrier too early or too slowly. Please look at the task logs (both timed out and first task) to debug further.",
        ),
    ),
    says("Timeout waiting for key", ("torch 2.13.0", "Timeout waiting for key:")),
    says(
        "Timed out receiving the shared seed",
        (
            "torchdata 0.6",
            "RuntimeError: Timed out receiving the shared seed from the distribtued store on Rank 2. (world_size=4, timeout=1800)",
        ),
    ),
    says(
        "stopped sending heartbeats",
        (
            "jaxlib 0.10.2",
            "The following tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:1",
        ),
    ),
    says(
        r"Timed out after \d+ seconds waiting for clients",
        ("torch 2.13.0", "DistStoreError: Timed out after 2 seconds waiting for clients. 1/2 clients joined."),
    ),
    says(
        "Timed out initializing process group",
        ("torch 2.13.0", "Timed out initializing process group in store based barrier on rank"),
    ),
    says(
        r"wait timeout after \d+ ?ms",
        ("torch 2.13.0", "torch.distributed.DistStoreError: wait timeout after 1000ms, keys: /k"),
    ),
    says(
        "submitted to be reduced, gathered or broadcasted by subset of ranks",
        (
            "horovod 0.13",
            "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds. This may indicate that different ranks are trying to submit different tensors or that only subset of ranks is submitting tensors, which will cause deadlock. Stalled ops: allreduce.conv1.weight [ready ranks: 5, 1, 4, 7, 2, 3]",
        ),
    ),
    says("[Ss]ocket Timeout", ("torch 2.13.0", "Socket Timeout")),
    says(
        "NCCL.{0,60}timed ?out",
        (
            "a log shown in public",
            "[E ProcessGroupNCCL.cpp:488] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        ),
    ),
    says(
        "NCCL timeout (?:in:|when waiting)",
        ("torch 2.15.0", "RuntimeError: NCCL timeout when waiting for nonblocking call to become successful."),
    ),
    says(
        "heartbeat (?:monitor )?(?:timed out|timeout)",
        (
            "jaxlib 0.10.2",
            "heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly. Check the task logs for an earlier error or scheduler events (e.g. preemption, eviction) to debug further.",
        ),
    ),
    says(
        "DEADLINE_EXCEEDED",
        (
            "jax 0.4.35 with Gloo",
            "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Gloo context initialization failed: DEADLINE_EXCEEDED: GetKeyValue() timed out with key: cpu:gloo/0,1/1 and duration: 30s",
        ),
    ),
    says(
        r"watchdog got stuck for \d+ seconds",
        (
            "torch 2.15.0",
            "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives. ",
        ),
    ),
    says(
        "ERROR in coordination service",
        (
            "tensorflow 2.12",
            "E tensorflow/tsl/distributed_runtime/coordination/coordination_service.cc:535] /job:worker/replica:0/task:1 has been set to ERROR in coordination service: ABORTED: /job:worker/replica:0/task:1 unexpectedly tried to connect with a different incarnation. It has likely restarted.",
        ),
    ),
    says(
        "[Cc]oordination (?:service )?agent is (?:already )?in error",
        (
            "jaxlib 0.10.2",
            "Shutdown() was called while coordination agent is in error state, implying that distributed execution failed. Note: agent will still shutdown anyway. Agent status: CANCELLED: Preempted",
        ),
    ),
    says(
        "error from (?:the )?coordination service",
        (
            "jaxlib 0.10.2",
            "Polled an error from coordination service (this can be an error from this or another task).",
        ),
    ),
    says(
        r"calling /tensorflow\.CoordinationService",
        (
            "jax 0.7 documentation",
            'Additional GRPC error information from remote target coordination_service while calling /tensorflow.CoordinationService/PollForError:\n:UNKNOWN:Error received from peer  {grpc_message:"Socket closed", grpc_status:14}',
        ),
    ),
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
            "TPU backend initialization is taking more than 60.0 seconds. Did you run your code on all TPU hosts? See https://docs.jax.dev/en/latest/multi_process.html for more information.",
        ),
    ),
    says(
        r"waiting for `.{0,200}` for \d+ seconds and may be stuck",
        (
            "jaxlib 0.10.2",
            "[id=1] This thread has been waiting for `all reduce RendezvousKey{run_id=RunId: 7, global_devices=[0, 1], num_local_participants=2, collective_op_kind=cross_module, op_id=2}` for 20 seconds and may be stuck. All 2 threads joined the rendezvous, however the leader has not marked the rendezvous as completed. Leader can be deadlocked inside the rendezvous callback.",
        ),
    ),
    says(
        "[Tt]ermination timeout for .{0,200}exceeded",
        (
            "jaxlib 0.10.2",
            "[id=1] Termination timeout for `all reduce RendezvousKey{run_id=RunId: 7, global_devices=[0, 1], num_local_participants=2, collective_op_kind=cross_module, op_id=2}` of 40 seconds exceeded. Exiting to ensure a consistent program state. Expected 2 threads to join the rendezvous, but only 1 of them arrived on time.",
        ),
    ),
    says(
        "RendezvousTimeout",
        (
            "torch 2.13.0",
            'Traceback (most recent call last):\n  File "/venv/lib/python3.11/site-packages/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py", line 680, in run\n    raise RendezvousTimeoutError\ntorch.distributed.elastic.rendezvous.api.RendezvousTimeoutError',
        ),
    ),
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
        rule(
            0.52,
            says(
                "watchdog thread terminated with exception",
                (
                    "torch 2.6",
                    "[PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: [PG ID 0 PG GUID 0(default_pg) Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
                ),
            ),
        ),
    ),
)
