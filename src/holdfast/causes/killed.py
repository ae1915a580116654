from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, rule, shell, words
from holdfast.causes.shared.words import KILLED, SIGKILL_REPORTED

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
            *SIGKILL_REPORTED,
        ),
    ),
    signals={signal.SIGKILL: 0.35},
)
