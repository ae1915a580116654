"""What helps after each of the NVIDIA driver's numbered messages (Xid), by NVIDIA's public catalogue, in our words."""

from __future__ import annotations

START_AGAIN = "start the job again"
LOOK_AT_THE_CODE = "start the job again; if it comes back with this job alone, run it under compute-sanitizer"
RESET = (
    "reset the card with nothing running on it (nvidia-smi --gpu-reset), or reboot; if it comes back, have it replaced"
)
REBOOT = "reboot the machine; if it comes back, have the card's seat, power and heat checked, then the card replaced"
LATER = "nothing at once; reset the card when it is free"
FIRST_ONE = "look for the Xid before it: this one follows from another"

ACTIONS = {
    13: LOOK_AT_THE_CODE,
    31: LOOK_AT_THE_CODE,
    32: START_AGAIN,
    38: RESET,
    43: FIRST_ONE,
    46: RESET,
    48: RESET,
    61: RESET,
    62: RESET,
    63: LATER,
    64: RESET,
    69: START_AGAIN,
    74: "look at the links (nvidia-smi nvlink -s) and reset all cards that are linked; if it comes back, have link or card replaced",
    79: REBOOT,
    92: "nothing at once; watch the counters (nvidia-smi -q -d ECC)",
    94: START_AGAIN,
    95: RESET,
    109: RESET,
    110: RESET,
    119: RESET,
    120: RESET,
    123: START_AGAIN,
    140: RESET,
    143: REBOOT,
    149: RESET,
}
