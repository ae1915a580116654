from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell

CAUSE = CauseRecord(
    id="terminal-closed",
    family="process",
    title="The terminal it ran in was closed",
    meaning="The session ended and took the run with it. A run that is to outlive it needs a terminal of its own.",
    sure="SIGHUP.",
    asked_to_stop=True,
    recipes=(shell("Run it where no terminal is needed", "tmux new -s train 'holdfast run python train.py'"),),
    exceptions=(
        rule(
            0.9,
            r"got sig(?:nal|val): ?1\b",
            says("SIGHUP", ("bash", "shell receives a SIGHUP")),
            types="SignalException",
        ),
    ),
    lines=(
        rule(
            0.85,
            r"got signal: 1\b",
            "closing signal SIGHUP",
            "Received 1 death signal",
            says("^Hangup$", ("bash 5 with glibc 2.42", "Hangup")),
            says(
                r"^.{0,200}: line \d+: *\d+ Hangup\b",
                ("bash 5.2", "job.sh: line 1: 28709 Hangup                  python train.py"),
            ),
        ),
        rule(0.6, says("SIGHUP", ("bash", "shell receives a SIGHUP"))),
    ),
)
