from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, NotSeen, rule, says, shell

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
            r"got sig(?:nal|val): ?(?:15|12|10)\b",
            says("SIGTERM", ("transformers 5.22.2", "SIGTERM received, will request JIT checkpoint after 3s")),
            types="SignalException",
        ),
        rule(
            0.85,
            says("SIGTERM", ("transformers 5.22.2", "SIGTERM received, will request JIT checkpoint after 3s")),
            "preempt",
            says("time limit", ("numpy 2.4.6", "CPU time limit exceeded")),
            unless="Exited|exit code",
        ),
    ),
    lines=(
        rule(
            0.96,
            says(
                "CANCELLED AT .{0,40}DUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE)",
                ("slurm slurm-25-05-0-1", "*** dense ON dense CANCELLED AT dense DUE TO JOB REQUEUE ***"),
            ),
        ),
        rule(0.85, r"\bJobState=(?:TIMEOUT|PREEMPTED|CANCELLED|DEADLINE)\b"),
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
            "TERM_RUNLIMIT",
            says(r"walltime \d+ exceeded", ("openpbs v23.06.06", "walltime 3 exceeded limit 3")),
            "job killed: walltime",
            says("CPU time limit exceeded", ("numpy 2.4.6", "CPU time limit exceeded")),
            "SIGXCPU",
            "exceeded (?:the )?(?:time|wall ?clock) limit",
            "DeadlineExceeded",
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
            "[Ss]pot (?:instance|VM).{0,40}(?:interrupt|reclaim|terminat)",
            "has been preempted",
            "Preempted by",
            "received a shutdown signal",
        ),
        rule(
            0.8,
            says(r"[Rr]eceived (?:signal )?(?:SIGTERM|15\b)", ("lightning 2.6.6", "Received SIGTERM: 3")),
            "Received 15 death signal",
            says("SIGTERM received", ("transformers 5.22.2", "SIGTERM received, will request JIT checkpoint after 3s")),
            r"Process \d+ got signal: 15",
            says("caught SIGTERM", ("slurm slurm-25-05-0-1", "Caught SIGTERM. Shutting down.")),
            "[Gg]raceful shutdown (?:initiated|requested|started)",
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
            r"[Cc]aught signal (?:15|SIGTERM)\b",
            says(
                r"exit (?:code|status):? 143\b",
                ("GitHub Actions runner", "Error: Process completed with exit code 143."),
            ),
            r"exitcode\s{0,4}: -15\b",
        ),
        rule(
            0.8,
            says(
                r"Job allocation \d+ has been revoked", ("slurm slurm-25-05-0-1", "Job allocation 3 has been revoked.")
            ),
        ),
        rule(0.62, "lame workers found", "TPU (?:node |worker )?(?:was |has been )?preempted"),
        rule(0.1, "closing signal SIGTERM"),
    ),
    signals={signal.SIGTERM: 0.55},
    ruled_out=(NotSeen("signal.received", "A request to stop: no signal arrived at Holdfast."),),
)
