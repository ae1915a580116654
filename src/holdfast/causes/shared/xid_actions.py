"""What helps after each of the NVIDIA driver's numbered messages (Xid), by NVIDIA's public catalogue for Ampere and newer cards, in our
words: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (as of 2025-10-29)."""

from __future__ import annotations

START_AGAIN = "start the job again"
LOOK_AT_THE_CODE = "start the job again; if it comes back with this job alone, run it under compute-sanitizer"
RESET = (
    "reset the card with nothing running on it (nvidia-smi --gpu-reset), or reboot; if it comes back, have it replaced"
)
REBOOT = "reboot the machine; if it comes back, have the card's seat, power and heat checked, then the card replaced"
LATER = "nothing at once; reset the card when it is free"
OWN_FAULT = "nothing to do to the card: the job was ended for a fault of its own, which the Xid before it may name"
LINKS = "look at the links (nvidia-smi nvlink -s) and reset all cards that are linked; if it comes back, have link or card replaced"
LINKS_5 = "do what Xid 154 beside it says (a reset, mostly); if it comes back, have link or card replaced"

ACTIONS = {
    13: LOOK_AT_THE_CODE,
    31: LOOK_AT_THE_CODE,
    32: LOOK_AT_THE_CODE,
    38: "nothing at once; if it comes back, update the driver, then have the card replaced",
    43: OWN_FAULT,
    46: RESET,
    48: RESET,
    54: "have the power cables of the card checked",
    61: RESET,
    62: RESET,
    63: LATER,
    64: RESET,
    69: LOOK_AT_THE_CODE,
    74: LINKS,
    79: REBOOT,
    92: "nothing at once; watch the counters (nvidia-smi -q -d ECC)",
    94: START_AGAIN,
    95: RESET,
    109: RESET,
    110: RESET,
    119: RESET,
    120: RESET,
    136: LINKS,
    140: RESET,
    143: RESET,
    **dict.fromkeys(range(144, 151), LINKS_5),
    155: RESET,
    156: RESET,
    158: RESET,
    171: RESET,
    172: RESET,
}
