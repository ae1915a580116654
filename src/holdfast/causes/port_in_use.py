from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell, words
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
            "Address already in use",
            "EADDRINUSE",
            r"\[Errno (?:98|48)\]",
            "errno: 98",
            "Only one usage of each socket",
            r"No address added out of total \d",
        ),
    ),
    lines=(
        rule(
            0.85,
            "Address already in use",
            "EADDRINUSE",
            r"No address added out of total \d",
            "failed to bind to (?:any )?.{0,60}address",
        ),
    ),
    last_frames=((0.52, r"\bTCPStore\("),),
)
