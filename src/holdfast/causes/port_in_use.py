from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, shell, words
from holdfast.causes.shared.recipes import AMONG_RANKS

PORT = r"(?i)(?:port[:= ]+|:)(?P<port>[1-9]\d{3,4})\b"
CAUSE = CauseRecord(
    id="port-in-use",
    family="ranks",
    title="The port is taken",
    meaning="Another process listens at the address this run wants. Often an earlier run has not ended.",
    sure="The system's own error (address already in use).",
    recipes=(
        shell("See who has it", "ss -ltnp | grep $port", said=PORT),
        shell("See who listens where", "ss -ltnp", unsaid=PORT),
        shell("Take any free one", "torchrun --standalone --nproc-per-node=2 train.py", said=AMONG_RANKS),
        words("Ask for port 0 where it is opened: the system takes a free one", "$frame", unsaid=AMONG_RANKS),
    ),
    exceptions=(
        rule(
            0.95,
            says("Address already in use", ("glibc 2.42 perror", "bind: Address already in use")),
            says(
                r"\[Errno (?:98|48)\]",
                (
                    "CPython 3.11.7 with glibc 2.42, translated",
                    "OSError: [Errno 98] Die Adresse wird bereits verwendet",
                ),
            ),
            says(
                "Only one usage of each socket",
                (
                    "CPython 3.11.7 on Windows",
                    "OSError: [WinError 10048] Only one usage of each socket address (protocol/network address/port) is normally permitted",
                ),
            ),
            says(
                r"No address added out of total \d",
                ("grpcio 1.85.1", "No address added out of total 1 resolved for '0.0.0.0:2222'"),
            ),
        ),
        rule(
            0.85,
            says(
                "Failed to bind to address",
                (
                    "grpcio 1.85.1",
                    "RuntimeError: Failed to bind to address 127.0.0.1:29878; set GRPC_VERBOSITY=debug environment variable to see detailed error message.",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.85,
            says("Address already in use", ("glibc 2.42 perror", "bind: Address already in use")),
            says(
                r"No address added out of total \d",
                ("grpcio 1.85.1", "No address added out of total 1 resolved for '0.0.0.0:2222'"),
            ),
            says(
                "failed to bind to (?:any )?.{0,60}address",
                (
                    "grpcio 1.85.1",
                    "RuntimeError: Failed to bind to address 0.0.0.0:2222; set GRPC_VERBOSITY=debug environment variable to see detailed error message.",
                ),
            ),
        ),
    ),
    last_frames=((0.52, r"\bTCPStore\("),),
)
