"""TensorFlow on a GPU that is too small for the batch: each script bare, and unedited under `holdfast run`.

Seconds are from the beginning of the step that failed to the end of the next one that finished, with other programs on
the card and the cores; the peak is TensorFlow's own, of the last attempt; apart is the distance of the weights from an
uncapped bare run. With HOLDFAST_LAB_TINY=1 everything but the GPU itself is tried on a CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from lab.oom.runs import OVERTIME
from lab.oom.table import Row
from lab.oom.tensorflow_cases import CASES, ENDED, Case, Ended
from lab.oom.tensorflow_runs import HOW_MANY_LINES, Trained, apart, resumed_step, train, train_until

HEADINGS = ("case", "bare", "exit", "how", "k", "seconds", "peak / cap", "apart", "why")
PATIENCE_S = 150.0
WITHIN_S = 360.0
MIB = 1 << 20
TERMINATED = 143
SEES_A_GPU = "import tensorflow as tf; print(len(tf.config.list_physical_devices('GPU')))"


def sees_a_gpu() -> bool:
    """Asked in a process of its own: the one that asks holds the card until it ends."""
    asked = subprocess.run([sys.executable, "-c", SEES_A_GPU], capture_output=True, text=True, check=False)
    return asked.returncode == 0 and asked.stdout.strip().splitlines()[-1:] not in ([], ["0"])


def names() -> list[str]:
    return [case.name for case in CASES] + [case.name for case in ENDED]


def listed() -> str:
    """Each case with what is asked of the card and of Holdfast."""
    lines = []
    for case in CASES:
        card = (
            f"{case.limit_mb} MB" if case.limit_mb else f"{case.share:.0%} of its need" if case.share else "whole card"
        )
        lines.append(f"{case.name:24} {case.variant:16} {card:18} holdfast run {' '.join(case.options)}")
    lines += [f"{one.name:24} {'steady':16} {one.signal:18} holdfast run {' '.join(one.options)}" for one in ENDED]
    return "\n".join(lines)


def why_not(only: list[str]) -> str:
    """What is in the way of measuring; nothing where all is well."""
    if unknown := sorted(set(only) - set(names())):
        return f"no such case: {', '.join(unknown)}; known are {', '.join(names())}"
    if os.environ.get("HOLDFAST_LAB_TINY") != "1" and not sees_a_gpu():
        return "TensorFlow sees no GPU here; with HOLDFAST_LAB_TINY=1 the programs are tried on the CPU"
    return ""


def rows(only: list[str], jobs: int, within_s: float = WITHIN_S) -> Iterator[Row]:
    """As they end: first what shares the card, then one by one what takes all of it."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Laboratory(Path(folder), time.monotonic() + within_s, jobs)
        yield from lab.rows(
            [case for case in CASES if not only or case.name in only],
            [one for one in ENDED if not only or one.name in only],
        )


class Laboratory:
    def __init__(self, place: Path, deadline: float, jobs: int) -> None:
        self._place = place
        self._deadline = deadline
        self._pool = ThreadPoolExecutor(jobs)
        self._references: dict[str, Future[Trained | None]] = {}

    def rows(self, cases: list[Case], ended: list[Ended]) -> Iterator[Row]:
        # References are queued before whoever waits for them, and wait for nobody.
        variants = [case.compared_with for case in cases if case.compared_with] + ["steady"] * bool(ended)
        for variant in dict.fromkeys(variants):
            self._references[variant] = self._pool.submit(self._reference, variant)
        shared = [self._pool.submit(self._row, one.name, partial(self._ended, one)) for one in ended]
        shared += [self._pool.submit(self._row, one.name, partial(self._case, one)) for one in cases if not one.alone]
        for done in as_completed(shared):
            yield done.result()
        for one in cases:
            if one.alone:
                yield self._row(one.name, partial(self._case, one))
        self._pool.shutdown()

    def _row(self, name: str, measure: Callable[[], Row]) -> Row:
        """One that cannot be measured is a row that says so, and the others go on."""
        if time.monotonic() > self._deadline:
            return _failed(name, "not run: the time for the table is over")
        try:
            return measure()
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            return _failed(name, f"not measured: {type(error).__name__}: {error}")

    def _reference(self, variant: str) -> Trained | None:
        """Uncapped and bare."""
        trained = train(
            self._place, f"{variant}-reference", variant, ["--growth"], options=None, patience=self._patience()
        )
        return trained if trained.exit == 0 else None

    def _patience(self) -> float:
        return max(1.0, min(PATIENCE_S, self._deadline - time.monotonic()))

    def _case(self, case: Case) -> Row:
        reference = self._references[case.compared_with].result() if case.compared_with else None
        if case.compared_with and reference is None:
            return _failed(case.name, "not measured: the uncapped bare run failed")
        card, cap = _card(case, reference)
        bare = self._bare(case, card, reference)
        held = train(self._place, case.name, case.variant, card, options=case.options, patience=self._patience())
        distance = apart(reference, held)
        held.forget()
        wrong = _what_is_wrong(case, bare, held, distance, cap)
        peak = f"{held.peak // MIB} / {cap // MIB if cap else '-'} MiB" if held.peak is not None else "-"
        cells = (
            case.name, str(bare.exit), str(held.exit), held.how, str(held.k), held.seconds_lost, peak,
            "-" if distance is None else f"{distance:.1e}", held.verdict,
        )  # fmt: skip
        return Row(not wrong, cells, _note(wrong, held))

    def _bare(self, case: Case, card: list[str], reference: Trained | None) -> Trained:
        """Where the script has the whole card and it is enough, that is the uncapped run, which is there already."""
        if reference is not None and not case.limit_mb and not case.share:
            return reference
        bare = train(self._place, f"{case.name}-bare", case.variant, card, options=None, patience=self._patience())
        bare.forget()
        return bare

    def _ended(self, case: Ended) -> Row:
        reference = self._references["steady"].result()
        if reference is None:
            return _failed(case.name, "not measured: the undisturbed run failed")
        ended = train_until(self._place, case, ["--growth"], self._patience())
        again = resumed_step(ended)
        held = ended
        wrong: list[str] = []
        if case.signal == "SIGTERM":
            wrong += [] if ended.exit == TERMINATED else [f"ended with {ended.exit}, not {TERMINATED}"]
            wrong += [] if ended.saved_by_signal else ["no checkpoint was saved after the signal"]
            held = train(
                self._place, case.name, "steady", ["--growth"], options=("--resume",), patience=self._patience(),
                resumes=ended,
            )  # fmt: skip
            again = resumed_step(held)
        distance = apart(reference, held)
        wrong += [] if held.exit == 0 else [f"the run that went on ended with {held.exit}"]
        wrong += [] if again else ["it did not go on where it was: it began anew or not at all"]
        wrong += [] if distance == 0.0 else ["the weights are not the undisturbed run's"]
        how = f"{case.signal} at step {ended.signalled_at}, went on at {again}"
        exits = f"{ended.exit}, then {held.exit}" if held is not ended else str(ended.exit)
        cells = (
            case.name, "-", exits, how, "1", held.seconds_lost, "-", "-" if distance is None else f"{distance:.1e}",
            ended.verdict,
        )  # fmt: skip
        return Row(not wrong, cells, _note(wrong, held))


def _card(case: Case, reference: Trained | None) -> tuple[list[str], int | None]:
    """What the script is told about the card, and what it may take in bytes. The limit counts 2^20 a MB."""
    limit = case.limit_mb
    if case.share is not None and reference is not None:
        limit = max(1, int((reference.peak or 0) * case.share) // MIB)
    budget = case.budget_mib
    cap = min((size for size in (limit, budget) if size is not None), default=None)
    words = (["--limit", str(limit)] if limit else []) + (["--growth"] if case.growth else [])
    return words, cap * MIB if cap is not None else None


def _what_is_wrong(case: Case, bare: Trained, held: Trained, distance: float | None, cap: int | None) -> list[str]:
    wrong = []
    if case.refused:
        said = "refused" in held.how and held.cause == "gpu-memory-exhausted"
        return [] if held.exit and said else ["not refused with a reason"]
    if bare.exit == OVERTIME:
        wrong.append("bare it ran past its time: this shows nothing")
    elif case.bare_dies and bare.exit == 0:
        wrong.append("bare it did not die: this shows nothing")
    elif not case.bare_dies and bare.exit:
        wrong.append(f"bare it ended with {bare.exit}: {bare.last_line}")
    if held.exit:
        wrong.append(f"ended with {held.exit}")
    elif case.compared_with and (distance is None or distance > case.within):
        wrong.append(f"apart by {distance}, allowed {case.within}")
    if cap is not None and held.peak is not None and held.peak > cap:
        wrong.append("took more than it may")
    if case.fits and held.how != "not touched":
        wrong.append("was touched, and it fits")
    if not case.fits and held.exit == 0 and (held.outcome, held.cause) != ("recovered", "gpu-memory-exhausted"):
        wrong.append("not told as a rescue from too little memory of the card")
    return wrong


def _note(wrong: list[str], held: Trained) -> str:
    if not wrong:
        return ""
    return "\n".join(f"    {line}" for line in [*wrong, *(held.last_lines(HOW_MANY_LINES) if held.exit else [])])


def _failed(name: str, reason: str) -> Row:
    return Row(False, (name, *[""] * (len(HEADINGS) - 2), reason))
