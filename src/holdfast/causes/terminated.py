from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, NotSeen, rule, shell

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
        rule(0.9, r"got sig(?:nal|val): ?(?:15|12|10)\b", "SIGTERM", types="SignalException"),
        rule(0.85, "SIGTERM", "preempt", "time limit", unless="Exited|exit code"),
    ),
    lines=(
        rule(0.96, "CANCELLED AT .{0,40}DUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE)"),
        rule(0.85, r"\bJobState=(?:TIMEOUT|PREEMPTED|CANCELLED|DEADLINE)\b"),
        rule(0.78, r"\*\*\* (?:JOB|STEP) [\d.]+ ON \S+ CANCELLED AT"),
        rule(
            0.95,
            "TERM_RUNLIMIT",
            r"walltime \d+ exceeded",
            "job killed: walltime",
            "CPU time limit exceeded",
            "SIGXCPU",
            "exceeded (?:the )?(?:time|wall ?clock) limit",
            "DeadlineExceeded",
        ),
        rule(
            0.9,
            "imminent node shutdown",
            r"\b(?:job|task|instance|node|pod|worker)\b.{0,40}\bpreempted\b(?!,? or)",
            "[Ss]pot (?:instance|VM).{0,40}(?:interrupt|reclaim|terminat)",
            "has been preempted",
            "Preempted by",
            "received a shutdown signal",
        ),
        rule(
            0.8,
            r"[Rr]eceived (?:signal )?(?:SIGTERM|15\b)",
            "Received 15 death signal",
            "SIGTERM received",
            r"Process \d+ got signal: 15",
            "caught SIGTERM",
            "[Gg]raceful shutdown (?:initiated|requested|started)",
        ),
        rule(
            0.6,
            "^Terminated(?:: 15)?$",
            r"^.{0,200}: line \d+: *\d+ Terminated\b",
            r"[Cc]aught signal (?:15|SIGTERM)\b",
            r"exit (?:code|status):? 143\b",
            r"exitcode\s{0,4}: -15\b",
        ),
        rule(0.8, r"Job allocation \d+ has been revoked"),
        rule(0.62, "lame workers found", "TPU (?:node |worker )?(?:was |has been )?preempted"),
        rule(0.1, "closing signal SIGTERM"),
    ),
    signals={signal.SIGTERM: 0.55},
    ruled_out=(NotSeen("signal.received", "A request to stop: no signal arrived at Holdfast."),),
)
