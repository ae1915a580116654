from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, rule, says, shell, words
from holdfast.causes.shared.words import KILLED

CAUSE = CauseRecord(
    id="killed",
    family="process",
    title="Killed by somebody (SIGKILL)",
    meaning="SIGKILL came from a person, a script or a service; the kernel's memory killer was not it. It leaves no message and no sender.",
    sure="The signal, and no kill for memory in the kernel's counters or log.",
    symptom=True,
    echo=True,
    restart=RestartAdvice(RestartKind.AGAIN, "killed by somebody"),
    recipes=(
        shell("Find out who", "journalctl --since '10 minutes ago' | grep -iE 'kill|oom|timeout'"),
        words("Ask whoever may do it", "SIGKILL leaves no sender: a scheduler, a supervisor or a colleague"),
    ),
    lines=(
        rule(
            0.35,
            *KILLED,
            says(
                "signal 9",
                ("Open MPI 5", "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed)."),
            ),
            says(
                "SIGKILL",
                (
                    "CPython 3.11.7",
                    "CalledProcessError: Command '['sh', '-c', 'kill -9 $$']' died with <Signals.SIGKILL: 9>.",
                ),
            ),
            says(
                "exit(?:ed with)? ?(?:code|status)?:? 137",
                ("GitHub Actions runner", "Error: Process completed with exit code 137."),
            ),
            says(r"exitcode\s{0,4}: -9\b", ("torch 1.13", "  exitcode  : -9 (pid: 25827)")),
            says(
                r"return ?code =? ?-9\b",
                (
                    "DeepSpeed 0.16",
                    "['/usr/bin/python3', '-u', 'train.py', '--local_rank=0'] exits with return code = -9",
                ),
            ),
        ),
    ),
    signals={signal.SIGKILL: 0.35},
)
