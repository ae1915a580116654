"""Collects what the restart policy needs to know of the attempts so far."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from functools import partial

from holdfast import detectors, diagnosis
from holdfast.detectors.endings import ending
from holdfast.detectors.runner import DetectorRunner
from holdfast.inside.script_state.rank_checkpoints import newest_of_any
from holdfast.policy import restart
from holdfast.policy.restart import Attempt
from holdfast.recorded_events import Exit, GuardAct, KeptByInput, MicroBatches
from holdfast.supervisor import signals
from holdfast.supervisor.known_micro_batches import newest
from holdfast.supervisor.launch import Launcher
from holdfast.supervisor.run_spec import PLACEHOLDER, RunSpec
from holdfast.supervisor.script_checkpoints import newest_own
from holdfast.supervisor.tick import Watch
from holdfast.vocabulary import Cause, Decision, Diagnosis, Event, RestartAdvice, Window
from holdfast.windows import DeclaredWindow, Reads

JUDGING_S = 5.0  # for each detector; all of them together take some milliseconds, and nothing runs meanwhile
UNDIAGNOSED = Diagnosis("unknown", None)
GRACE_S = 900.0  # schedulers send SIGTERM first and SIGKILL minutes later: that kill is not an accident
OF_AN_ATTEMPT = Reads(
    course=("job.held_bytes", "train.steps_count"),
    events=(
        KeptByInput.KIND,
        Exit.KIND, GuardAct.STOPPED, MicroBatches.KIND, "adapter.ready", "checkpoint.mismatch", "checkpoint.own",
        "checkpoint.restored", "checkpoint.saved",
        "framework.loaded", "key.interrupt", "rescue.caught", "rescue.exhausted", "rescue.needs", "rescue.ready", "rescue.refused",
        "signal.received", "train.phase",
    ),
)  # fmt: skip
STANDS_AGAIN = ("unequal-batches",)  # Holdfast has ended it, and it would come to the same place
READ_AT_THE_END = OF_AN_ATTEMPT | detectors.READ_AT_THE_END | diagnosis.READS
MOST_OF_IT = 0.8
# What exit code 128+N implies where a shell passed it on and nothing else is known.
IMPLIED: dict[int, str] = {
    signal.SIGKILL: "killed",
    **dict.fromkeys((signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE), "native-crash"),
}


class Attempts:
    def __init__(self, spec: RunSpec, launcher: Launcher) -> None:
        self._spec = spec
        self._launcher = launcher
        self._ended: list[Attempt] = []
        self._began = time.time()
        self._handed_k = spec.micro_batches
        self.verdict: Diagnosis | None = None  # of the last attempt that failed
        self.trained = False  # steps were seen, in any of them
        self._detectors = DetectorRunner(detectors.FOR_DIAGNOSIS, slow_s=JUDGING_S, hung_s=0.0)

    @property
    def number(self) -> int:
        return len(self._ended) + 1

    def began_again(self, k: int | None) -> None:
        self._began, self._handed_k = time.time(), k

    def judge(self, watch: Watch, ended: Event) -> Decision:
        from holdfast.causes import RESTARTS  # noqa: PLC0415 - some MiB, for runs that fail

        window = watch.attempt_window(ended)
        self.verdict = self._diagnosed(watch, window)
        known = self._known(DeclaredWindow(window, OF_AN_ATTEMPT), self.verdict, ended, RESTARTS)
        self.trained = self.trained or known.step is not None
        self._ended.append(known)
        return restart.decide(self._ended, self._spec.policy, self._spec.max_restarts)

    def judge_last(self, watch: Watch) -> None:
        """Of a run that is never started again: for its closing words alone."""
        if self.verdict is None:
            window = watch.attempt_window()
            self.verdict = self._diagnosed(watch, window)
            self.trained = _last_step(DeclaredWindow(window, OF_AN_ATTEMPT)) is not None

    def _diagnosed(self, watch: Watch, window: Window) -> Diagnosis:
        from holdfast.diagnosis.verdict import diagnose  # noqa: PLC0415

        findings = self._detectors.find(window)
        judged = partial(diagnose, findings=findings, while_running=watch.told)
        verdict = self._detectors.alone("diagnosis", judged, window, UNDIAGNOSED)
        watch.report_switched_off(self._detectors.switched_off(time.time()), time.time())
        return verdict

    def _known(
        self, window: Window, diagnosis: Diagnosis, ended: Event, restarts: Mapping[str, RestartAdvice]
    ) -> Attempt:
        how, cause = ending(window), diagnosis.cause
        number = how.signal if how is not None else 0
        named = _cause(cause, number, restarts)
        checkpoint, step, saved_at = self._checkpoint(window)
        if window.event("checkpoint.own") is not None:  # it goes on from another step than ours is of
            step = None
        return Attempt(
            cause=named,
            restart=restarts.get(named),
            killed=number in IMPLIED  # also native code that crashed at the memory budget: Python saw no error
            or window.event(GuardAct.STOPPED) is not None
            or (cause is not None and any(item.source == "kernel-log" for item in cause.evidence)),
            step=_last_step(window),
            begun=_has_begun(window),
            loaded=window.event("framework.loaded") is not None,
            refused=not self._spec.resumed_from and _was_refused(window),
            evaluating=_is_evaluating(window),
            filled_by=_filled_by(window),
            seconds=ended.at - self._began,
            k=_micro_batches(window, self._handed_k),
            can_shrink=_can_shrink(window),
            needed_k=_needed_k(window, self._handed_k),
            rescue_failed=_rescue_failed(window),
            checkpoint=checkpoint,
            checkpoint_step=step,
            since_checkpoint_s=ended.at - max(saved_at, self._began) if saved_at is not None else None,
            read_input=self._launcher.input.was_read(),
            asked_to_stop=diagnosis.outcome == "stopped" or self._was_asked(window, ended),
        )

    def _checkpoint(self, window: Window) -> tuple[int | None, int | None, float | None]:
        """Number (grows with each save), step and time of the newest checkpoint."""
        spec = self._spec
        if spec.resume_args and not PLACEHOLDER.search(spec.resume_args):
            return 0, None, None  # the script finds its own checkpoint: assume that there is one
        if spec.resume_args:
            own = newest_own(spec.resume_args, spec.cwd, spec.began)
            return (int(own.at * 1000), None, own.at) if own else (None, None, None)
        manifest = newest_of_any(str(spec.checkpoints)) if spec.checkpoints is not None else None
        if manifest is None:
            return None, None, None
        return int(manifest["number"]), _whole(manifest.get("step")), _saved_at(manifest["path"])

    def _was_asked(self, window: Window, ended: Event) -> bool:
        asked = [
            event.at
            for event in window.events("signal.received")
            if event.data["signal"] in signals.ASK_TO_STOP and not self._launcher.ignores(event.data["signal"])
        ]
        asked += [event.at for event in window.events("key.interrupt")]
        return any(ended.at - at < GRACE_S for at in asked)


def _cause(cause: Cause | None, number: int, restarts: Mapping[str, RestartAdvice]) -> str:
    """A script does not SIGKILL itself: a finding that explains no kill is not the cause of one."""
    if cause is None or (number == signal.SIGKILL and cause.id not in restarts and cause.id not in STANDS_AGAIN):
        return IMPLIED.get(number, "")
    return cause.id


def _last_step(window: Window) -> int | None:
    """Counted over all attempts: a process that resumed may count its own steps from zero."""
    counts = [sample for sample in window.series("train.steps_count") if sample.value is not None]
    if not counts:
        return None
    restored = window.event("checkpoint.restored")
    resumed_at = _whole(restored.data.get("step")) if restored is not None else None
    before = 0
    if restored is not None and resumed_at is not None and (counts[0].value or 0) < resumed_at:
        # Fits that had finished before the checkpoint run again and count their steps again: that is no progress.
        again = [int(sample.value or 0) for sample in counts if sample.at <= restored.at]
        before = resumed_at - (again[-1] if again else 0)
    saved = [_whole(event.data.get("step")) or 0 for event in window.events("checkpoint.saved")]
    return max(before + int(counts[-1].value or 0), *saved, 0)


def _has_begun(window: Window) -> bool:
    """A first step was being compiled or run, whether or not it was finished."""
    return any(event.data.get("phase") in ("compile", "train") for event in window.events("train.phase"))


def _was_refused(window: Window) -> bool:
    refused = window.event("checkpoint.mismatch")
    return refused is not None and refused.data.get("edited") is False


def _is_evaluating(window: Window) -> bool:
    phases = window.events("train.phase")
    return bool(phases) and phases[-1].data.get("phase") == "validate"


def _filled_by(window: Window) -> str:
    """The part of the input pipeline that is to keep nearly all that the job held, or more."""
    kept = KeptByInput.largest(window)
    held = max((sample.value for sample in window.series("job.held_bytes") if sample.value is not None), default=None)
    return kept.call if kept is not None and held is not None and kept.bytes > MOST_OF_IT * held else ""


def _micro_batches(window: Window, handed: int | None) -> int:
    taken = newest(window.events(MicroBatches.KIND))
    return max(1, taken or (handed if _can_shrink(window) else None) or 1)


def _can_shrink(window: Window) -> bool:
    refused, measured = _last_in_training(window, "rescue.refused"), _last_in_training(window, "rescue.needs")
    if refused is not None and (measured is None or measured.at < refused.at):
        return False
    adapters = [(event.data.get("name"), event.data.get("backend")) for event in window.events("adapter.ready")]
    return bool({("keras", "tensorflow"), ("keras", "torch")} & set(adapters)) or bool(
        window.events(MicroBatches.KIND, "rescue.ready", "rescue.needs")
    )


def _needed_k(window: Window, handed: int | None) -> int | None:
    """The k the process measured before it ended. If it was started with that k already, the measurement was wrong."""
    measured = _last_in_training(window, "rescue.needs")
    k = _whole(measured.data.get("k")) if measured is not None else None
    return k if k is not None and k > max(1, handed or 1) and _can_shrink(window) else None


def _rescue_failed(window: Window) -> bool:
    return any(_last_in_training(window, kind) is not None for kind in ("rescue.caught", "rescue.exhausted"))


def _last_in_training(window: Window, kind: str) -> Event | None:
    found = [event for event in window.events(kind) if event.data.get("where", "train") == "train"]
    return found[-1] if found else None


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None


def _saved_at(path: str) -> float | None:
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime
    return None
