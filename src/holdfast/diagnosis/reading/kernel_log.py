"""The NVIDIA driver's numbered messages in the kernel's log."""

from __future__ import annotations

import re

from holdfast.causes import CAUSES
from holdfast.causes.shared.xid_actions import ACTIONS
from holdfast.vocabulary import Evidence, Finding

XID = re.compile(r"NVRM: Xid \((?P<card>[^)]{1,60})\): (?P<number>\d{1,3}),?(?P<rest>.{0,120})")
XIDS = {
    number: (record.id, xids.confidence, xids.text)
    for record in CAUSES.values()
    for xids in record.xids
    for number in xids.numbers
}


def read_xid(text: str) -> Finding | None:
    found = XID.search(text)
    return of_xid(int(found["number"]), found["card"]) if found is not None else None


def of_xid(number: int, card: str) -> Finding | None:
    known = XIDS.get(number)
    if known is None:
        return None
    cause, confidence, meaning = known
    told = f"kernel log: Xid {number} on {card}: {meaning}"
    if number in ACTIONS:
        told += f"; what helps: {ACTIONS[number]}"
    return Finding(cause, confidence, (Evidence(told, "kernel-log"),), {"card": card})
