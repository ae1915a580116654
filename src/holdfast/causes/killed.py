from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, Restart, RestartKind, rule, says, shell, words
from holdfast.causes.shared.words import KILLED

CAUSE = CauseRecord(
    id="killed",
    family="process",
    title="Killed by somebody (SIGKILL)",
    meaning="SIGKILL came from a person, a script or a service; the kernel's memory killer was not it. It leaves no message and no sender.",
    sure="The signal, and no kill for memory in the kernel's counters or log.",
    symptom=True,
    echo=True,
    restart=Restart(RestartKind.AGAIN, "killed by somebody"),
    recipes=(
        shell("Find out who", "journalctl --since '10 minutes ago' | grep -iE 'kill|oom|timeout'"),
        words("Ask whoever may do it", "SIGKILL leaves no sender: a scheduler, a supervisor or a colleague"),
    ),
    lines=(
        rule(
            0.35,
            *KILLED,
            "signal 9",
            "SIGKILL",
            says(
                "exit(?:ed with)? ?(?:code|status)?:? 137",
                ("GitHub Actions runner", "Error: Process completed with exit code 137."),
            ),
            "<Signals.SIGKILL",
            r"exitcode\s{0,4}: -9\b",
            r"return ?code =? ?-9\b",
        ),
    ),
    signals={signal.SIGKILL: 0.35},
)
