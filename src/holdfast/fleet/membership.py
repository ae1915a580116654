"""A run that is one rank of a job says so in its folder, and by that the runs of one job find one another on shared storage.

Clocks of machines differ, and which rank was first is a matter of milliseconds. They share the storage: the time that it gives a file
against the time that the machine reads then is how far that machine is off.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.fleet.events import RankJoined

FILE = "rank.json"
LOOKS = 3  # at the storage's clock: the quickest answer is the surest
TICK_S = 0.01  # a file system's time moves in steps of a few milliseconds
TOGETHER_S = 900.0  # ranks of a job whose name does not say when it was started
NAMED = ("slurm", "kubernetes", "openmpi")  # engines whose names for a job are used once


@dataclass(frozen=True, slots=True)
class Member:
    run: Path
    joined: RankJoined
    began: float
    clock_offset_s: float = 0.0  # this machine's clock, less the storage's
    uncertainty_s: float = 0.0

    @property
    def correction_s(self) -> float:
        """What its times are to be lessened by; nothing where the difference may be none."""
        return self.clock_offset_s if abs(self.clock_offset_s) > self.uncertainty_s else 0.0


def keep(run: Path, identity: Mapping[str, Any]) -> None:
    """Before the script is started. A storage that refuses costs the runs one another, not the run."""
    with contextlib.suppress(OSError):
        offset_s, uncertainty_s = clock_against(run / FILE, json.dumps(identity))
        told = {**identity, "began": time.time(), "clock_offset_s": offset_s, "uncertainty_s": uncertainty_s}
        (run / FILE).write_text(json.dumps(told), encoding="utf-8")


def clock_against(file: Path, text: str) -> tuple[float, float]:
    """How far this machine's clock is ahead of the one that dates files there, and how sure that is."""
    found = []
    for _ in range(LOOKS):
        before = time.time()
        file.write_text(text, encoding="utf-8")
        dated = file.stat().st_mtime
        after = time.time()
        found.append((after - before, (before + after) / 2 - dated))
    took_s, offset_s = min(found)
    return offset_s, took_s / 2 + TICK_S


def member_of(run: Path) -> Member | None:
    """None for a run that is no rank, or one that cannot be read."""
    try:
        told = json.loads((run / FILE).read_text(encoding="utf-8"))
        joined = RankJoined.by(told, 0)
        numbers = [float(told.get(name) or 0.0) for name in ("began", "clock_offset_s", "uncertainty_s")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Member(run, joined, *numbers)


def mates(run: Path, runs: Iterable[Path]) -> list[Member]:
    """All runs of the job that this one is a rank of, itself among them, by rank; empty where it is alone."""
    mine = member_of(run)
    if mine is None:
        return []
    known = [member for one in runs if (member := member_of(one)) is not None and _together(mine, member)]
    latest = max((member.joined.restart for member in known), default=0)
    last_of_each = {one.joined.rank: one for one in sorted(known, key=_began) if one.joined.restart == latest}
    found = [member for _, member in sorted(last_of_each.items())]
    return found if len(found) > 1 else []


def _began(member: Member) -> float:
    return member.began - member.correction_s


def _together(one: Member, other: Member) -> bool:
    same = (one.joined.engine, one.joined.job) == (other.joined.engine, other.joined.job)
    if not same or not one.joined.job:
        return False
    unique = one.joined.engine in NAMED or ":" not in one.joined.job
    return unique or abs(_began(one) - _began(other)) < TOGETHER_S
