"""Of ranks that stand still together: those in a collective wait, and the one that is not there is why.

A rank that is held up has its own reason, which is named with the rank; one that left early had fewer batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.detectors.hang_scene import Scene
from holdfast.detectors.hang_verdict import Verdict
from holdfast.detectors.hang_words import place, said, whose
from holdfast.detectors.standing_threads import Standing, StandingThread
from holdfast.stack_snapshots import ProcessSnapshot

MOST_TOLD = 6  # threads in the evidence
COLLECTIVE = r"torch[/\\]distributed[/\\]|horovod[/\\]|mpi4py|tensorflow[/\\]python[/\\]distribute[/\\]"
BACKWARD = r"torch[/\\]autograd|torch[/\\]_tensor"
ENDED = "Ranks have different numbers of batches, and one waits for the others"
MOST_NAMED = 4
OfOne = Callable[[Scene, StandingThread], "Verdict | None"]


def stopped(scene: Scene) -> Verdict | None:
    """A rank that a signal has stopped, for which the others wait."""
    still = [process for process in _ranks(scene) if process.state in "Tt"]
    waiting = [main for main in _mains(scene) if main.process not in still and in_a_collective(main)]
    if not still or not waiting:
        return None
    rank = still[0]
    text = f"{whose(rank)} is stopped (state {rank.state}), as by SIGSTOP; kill -CONT {rank.pid} lets it go on"
    headline = f"{_name(rank)} is stopped, and the other ranks wait for it"
    told = (text, *(said(main) for main in waiting[: MOST_TOLD - 2]), _steps(scene))
    return Verdict("collective-timeout", 0.9, headline, told, soon=True, among_ranks=True)


def among(scene: Scene, of_one: OfOne) -> Verdict | None:
    """One waits in its backward pass and the others are past theirs, or all wait; a rank that is held up has its own reason."""
    mains = _mains(scene)
    waiting = [main for main in mains if in_a_collective(main)]
    if len(_ranks(scene)) + len(_ended(scene, mains)) < 2 or not waiting:
        return None
    for main in mains:
        if main not in waiting and main.own:
            return _held_up(scene, main, waiting, of_one)
    training = [main for main in waiting if main.stands_in(BACKWARD)]
    ended = [f"rank process {pid} has ended" for pid in _ended(scene, mains)]
    past = [main for main in waiting if main not in training] if training else []
    odd, rest = (past, training) if past and len(past) <= len(training) else (training or waiting, past)
    told = (*(said(main) for main in odd[:3]), *(said(main) for main in rest[:3]))
    evidence = (*told[:4], _steps(scene), *ended)[:MOST_TOLD]
    if training and (past or ended):
        headline = _unequal(odd, rest, fewer=odd is past) if past else ENDED
        return Verdict("unequal-batches", 0.85, headline, evidence, among_ranks=True)
    return Verdict("collective-timeout", 0.75, "Ranks wait for one that does not come", evidence, among_ranks=True)


def _held_up(scene: Scene, main: StandingThread, waiting: Sequence[StandingThread], of_one: OfOne) -> Verdict | None:
    """The rank that did not come, by its own reason where its stack tells one: a sleep tells none."""
    own = of_one(scene, main)
    if own is None:
        return None
    told = (*own.evidence, *(said(other) for other in waiting[: MOST_TOLD - 3]), _steps(scene))
    if main.standing is Standing.TIMED:
        headline = f"{_name(main.process)} does not come: it waits at {place(main)}, and the other ranks for it"
        return Verdict("collective-timeout", 0.8, headline, told, among_ranks=True)
    headline = f"{_name(main.process)} does not come: {own.headline[0].lower()}{own.headline[1:]}"
    return replace(own, headline=headline, evidence=told, among_ranks=True)


def in_a_collective(main: StandingThread) -> bool:
    return main.stands_in(COLLECTIVE) or (main.standing in (Standing.LOCK, Standing.TIMED) and main.stands_in(BACKWARD))


def _ranks(scene: Scene) -> list[ProcessSnapshot]:
    """Those that have taken a step, or said which rank they are."""
    return [one for one in scene.snapshot.processes if one.pid in scene.trainers or one.rank is not None]


def _mains(scene: Scene) -> list[StandingThread]:
    return [main for process in _ranks(scene) if (main := scene.main(process)) is not None]


def _ended(scene: Scene, mains: Sequence[StandingThread]) -> list[int]:
    return sorted(set(scene.trainers) - {main.process.pid for main in mains})


def _name(process: ProcessSnapshot) -> str:
    return f"Process {process.pid}" if process.rank is None else f"Rank {process.rank}"


def _unequal(odd: Sequence[StandingThread], rest: Sequence[StandingThread], fewer: bool) -> str:
    """`odd`: the fewer ranks, which stand elsewhere than the rest."""
    names = [_name(main.process) for main in odd[:MOST_NAMED]]
    names += [f"{len(odd) - MOST_NAMED} more"] if len(odd) > MOST_NAMED else []
    told = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    others = "others" if len(rest) > 1 else "other"
    if fewer:
        waits = "wait" if len(rest) > 1 else "waits"
        return f"{told} had fewer batches than the {others}, which {waits} for {'it' if len(odd) == 1 else 'them'}"
    waits = "waits" if len(odd) == 1 else "wait"
    return f"{told} had more batches than the {others}, and {waits} for {'them' if len(rest) > 1 else 'it'}"


def _steps(scene: Scene) -> str:
    named = {process.pid: whose(process) for process in _ranks(scene)}
    each = ", ".join(f"{named.get(pid, f'process {pid}')}: {number}" for pid, number in sorted(scene.trainers.items()))
    return f"steps finished by each rank: {each}"
