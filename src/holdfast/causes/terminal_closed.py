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
            says(
                r"got sig(?:nal|val): ?1\b",
                (
                    "torch 2.13.0",
                    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 25255 got signal: 1",
                ),
            ),
            says("SIGHUP", ("torch 2.13.0", "  traceback : Signal 1 (SIGHUP) received by PID 25298")),
            types="SignalException",
        ),
    ),
    lines=(
        rule(
            0.85,
            says(
                r"got signal: 1\b",
                (
                    "torch 2.13.0",
                    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 25255 got signal: 1",
                ),
            ),
            says(
                "closing signal SIGHUP",
                (
                    "torch 2.13.0",
                    "W1116 10:08:40.134000 25255 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 25298 closing signal SIGHUP",
                ),
            ),
            says(
                r"Received (?:Signals\.SIGHUP|1) death signal",
                (
                    "torch 2.13.0",
                    "W1116 10:08:40.133000 25255 torch/distributed/elastic/agent/server/api.py:753] Received 1 death signal, shutting down workers",
                ),
            ),
            says("^Hangup$", ("bash 5 with glibc 2.42", "Hangup")),
            says(
                r"^.{0,200}: line \d+: *\d+ Hangup\b",
                ("bash 5.2", "job.sh: line 1: 28709 Hangup                  python train.py"),
            ),
        ),
        rule(0.6, says("SIGHUP", ("torch 2.13.0", "  traceback : Signal 1 (SIGHUP) received by PID 25298"))),
    ),
)
