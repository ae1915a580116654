from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, NotSeen, near, rule, says, shell

CAUSE = CauseRecord(
    id="terminated",
    family="process",
    title="Asked to stop",
    meaning="A scheduler, a time limit or a person asked it to stop; nothing was wrong with it. It can go on from its last checkpoint.",
    sure="The signal or the scheduler's own line, and no error before it.",
    echo=True,
    asked_to_stop=True,
    in_passing=True,
    of_the_system=True,
    recipes=(
        shell(
            "Ask for more time, if a scheduler did it",
            "sbatch --time=24:00:00 job.sh   # or the queue's own option",
        ),
    ),
    exceptions=(
        rule(
            0.9,
            says(
                r"got sig(?:nal|val): ?(?:15|12|10)\b",
                (
                    "torch 2.13.0",
                    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 25052 got signal: 15",
                ),
            ),
            says("SIGTERM", ("transformers 5.22.2", "SIGTERM received, will request JIT checkpoint after 3s")),
            types="SignalException",
        ),
        rule(
            0.85,
            says("SIGTERM", ("transformers 5.22.2", "SIGTERM received, will request JIT checkpoint after 3s")),
            says(
                "killed by a spot preemption",
                (
                    "ray 2.10",
                    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: RayTrainWorker\n\tactor_id: 32b0eec39cfa87ac7bd8a4e901000000\n\tThe actor's node was killed by a spot preemption.",
                ),
                near(
                    "tensorflow 2.21.0",
                    "UnavailableError: /job:worker/replica:0/task:1 heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly. Check the task logs for an earlier error or scheduler events (e.g. preemption, eviction) to debug further.",
                ),
            ),
            says("time limit", ("numpy 2.4.6", "CPU time limit exceeded")),
            unless="Exited|exit code",
        ),
    ),
    lines=(
        rule(
            0.96,
            says(
                "CANCELLED AT .{0,40}DUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE)",
                (
                    "slurm slurm-25-05-0-1",
                    "slurmstepd: error: *** JOB 7518 ON node12 CANCELLED AT 2024-03-01T04:12:31 DUE TO TIME LIMIT ***",
                ),
            ),
        ),
        rule(
            0.85,
            says(
                r"\bJobState=(?:TIMEOUT|PREEMPTED|CANCELLED|DEADLINE)\b",
                ("slurm 23.02, scontrol show job", "   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)"),
            ),
        ),
        rule(
            0.78,
            says(
                r"\*\*\* (?:JOB|STEP) [\d.]+ ON \S+ CANCELLED AT",
                (
                    "a log shown in public",
                    "slurmstepd: error: *** JOB 7518 ON xantipa CANCELLED AT 2022-06-10T17:11:35 ***",
                ),
            ),
        ),
        rule(
            0.95,
            says("TERM_RUNLIMIT", ("LSF 10", "TERM_RUNLIMIT: job killed after reaching LSF run time limit.")),
            says(
                r"walltime \d+ exceeded",
                ("openpbs v23.06.06", "=>> PBS: job killed: walltime 36059 exceeded limit 36000"),
            ),
            says("CPU time limit exceeded", ("numpy 2.4.6", "CPU time limit exceeded")),
            says("SIGXCPU", ("torch 2.13.0", "  traceback : Signal 24 (SIGXCPU) received by PID 31244")),
            says(
                "exceeded (?:hard|soft) wallclock time",
                (
                    "Grid Engine 6.2",
                    "05/04/2011 03:36:38|  main|master|W|job 48.1 exceeded hard wallclock time - initiate terminate method",
                ),
            ),
            says(
                "longer than (?:the )?specified deadline",
                ("Kubernetes 1.30", "Message:          Pod was active on the node longer than the specified deadline"),
                near("google-api-core 2", "google.api_core.exceptions.DeadlineExceeded: 504 Deadline Exceeded"),
            ),
        ),
        rule(
            0.9,
            says(
                "imminent node shutdown",
                ("Kubernetes 1.38", "Pod was terminated in response to imminent node shutdown."),
            ),
            says(
                r"\b(?:job|task|instance|node|pod|worker)\b.{0,40}\bpreempted\b(?!,? or)",
                ("jaxlib 0.10.2", "Notified coordination service that this task will be preempted at"),
            ),
            says(
                "Spot (?:ITN received|Task was interrupted)",
                (
                    "AWS node termination handler 1.25",
                    'INF Node successfully cordoned and drained node_name=ip-10-0-3-17.ap-northeast-2.compute.internal reason="Spot ITN received. Instance will be interrupted at 2025-05-16T08:31:24Z \\n"',
                ),
                ("Amazon ECS", '    "stoppedReason": "Your Spot Task was interrupted.",'),
            ),
            says(
                r"Preempted by (?:a )?pod\b",
                (
                    "Kubernetes 1.30",
                    "  Normal   Preempted  68s   default-scheduler  Preempted by pod d9d25b95-4a7d-4214-8a30-8ce1fd616f67 on node worker-0",
                ),
            ),
            says(
                "received a shutdown signal",
                (
                    "GitHub Actions runner",
                    "##[error]The runner has received a shutdown signal. This can happen when the runner service is stopped, or a manually started runner is canceled.",
                ),
            ),
        ),
        rule(
            0.8,
            says(r"[Rr]eceived (?:signal )?(?:SIGTERM|15\b)", ("lightning 2.6.6", "[rank: 0] Received SIGTERM: 15")),
            says(
                r"Received Signals\.SIGTERM death signal",
                (
                    "torch 2.5 on CPython 3.10",
                    "W0616 00:44:57.731000 4026234 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers",
                ),
            ),
            says("SIGTERM received", ("transformers 5.22.2", "SIGTERM received, will request JIT checkpoint after 3s")),
            says(
                r"Process \d+ got signal: 15",
                (
                    "torch 2.13.0",
                    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 25052 got signal: 15",
                ),
            ),
            says("caught SIGTERM", ("slurm slurm-25-05-0-1", "Caught SIGTERM. Shutting down.")),
        ),
        rule(
            0.9,
            says(
                "^timeout: sending signal TERM to command",
                ("coreutils 9.1", "timeout: sending signal TERM to command ‘python’"),
            ),
        ),
        rule(
            0.6,
            says("^Terminated(?:: 15)?$", ("bash 5 with glibc 2.42", "Terminated")),
            says(
                r"^.{0,200}: line \d+: *\d+ Terminated\b",
                ("bash 5 with glibc 2.42", "train.sh: line 3: 12345 Terminated              python train.py"),
            ),
            says(
                r"[Cc]aught signal SIG\w+ on .{0,80}: this job is (?:timed-out|preempted)",
                (
                    "submitit 1.5",
                    "submitit WARNING (2024-03-02 11:20:41,112) - Caught signal SIGUSR2 on node-12: this job is timed-out.",
                ),
            ),
            says(
                r"exit (?:code|status):? 143\b",
                ("GitHub Actions runner", "Error: Process completed with exit code 143."),
            ),
            says(r"exitcode\s{0,4}: -15\b", ("torch 2.13.0", "  exitcode  : -15 (pid: 25610)  (SIGTERM)")),
        ),
        rule(
            0.8,
            says(
                r"Job allocation \d+ has been revoked",
                ("slurm slurm-25-05-0-1", "salloc: Job allocation 7518 has been revoked."),
            ),
        ),
        rule(
            0.62,
            says(
                "lame workers found",
                (
                    "tensorflow 1.15",
                    "INFO:tensorflow:ShutdownHook: lame workers found: HeartbeatManager(/job:worker/replica:0/task:0/device:CPU:0)",
                ),
            ),
        ),
        rule(
            0.1,
            says(
                "closing signal SIGTERM",
                (
                    "torch 2.13.0",
                    "W1116 10:08:52.134000 25052 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 25095 closing signal SIGTERM",
                ),
            ),
        ),
    ),
    signals={signal.SIGTERM: 0.55},
    ruled_out=(NotSeen("signal.received", "A request to stop: no signal arrived at Holdfast."),),
)
