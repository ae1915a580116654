"""Whether a script that failed is started again. Pure: what is known of every attempt, with what its
cause says about starting again, -> one decision.

A script is started again only if it had begun to train, in this attempt or one before, has read no standard input, was not
asked to stop, and failed in one of these ways:
- killed for memory: next time in smaller micro-batches, as long as they get smaller each time or it gets further, also
  where the first step was too big to be finished; a leak, which starts afresh with the process, as long as it gets
  further;
- out of memory, also by an exception, where the training process measured how many micro-batches would fit: once, with
  exactly that many. On a GPU, where nothing was measured and no rescue was tried, once with twice as many;
- killed by somebody (SIGKILL);
- it could not go on from its checkpoint, in a later attempt, and nobody has edited it: once, from the beginning;
- a worker that died, a native crash, a kill for memory while the data was loaded again: unless it has not got beyond
  the step it failed at before.
Anything else (an exception, a full disk, an exit code that means nothing to us) would come again.

At most `max_restarts` in a row without a newer checkpoint. Where there is no checkpoint at all the work since the start
is done again, so only up to five minutes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.vocabulary import Decision, DecisionKind, Policy, Restart, RestartAdvice, RestartKind

PAUSES_S = (1.0, 5.0, 15.0)  # before the first, second and any further restart in a row
CHEAP_S = 300.0  # of work without a checkpoint that may be repeated
LARGEST_K = 256  # micro-batches a step; more are not tried
LEAST_GAIN = (
    0.2  # as a share of the attempt before; below it a leak ends each attempt sooner, and restarting does not help
)

FOR_MEMORY = frozenset({RestartKind.SMALLER_STEPS, RestartKind.SMALLER_STEPS_ON_GPU})
PASSES_ONCE = frozenset({RestartKind.ONCE, RestartKind.ONCE_IF_KILLED})


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is known of one attempt once it has ended. Steps are counted over all attempts."""

    cause: str  # "" where it cannot be told
    killed: bool  # the script or one of its processes was killed by a signal it could not handle
    step: int | None  # the last step seen; None where there was none
    seconds: float  # how long it ran
    begun: bool = False  # the first step was begun
    k: int = 1  # micro-batches a step at its end
    can_shrink: bool = False  # the framework's part can make them smaller
    needed_k: int | None = None  # measured in the training process: so many would have fitted
    rescue_failed: bool = False  # memory ran out, smaller pieces were tried in the process, and that did not help
    checkpoint: int | None = None  # number of the newest checkpoint at its end
    checkpoint_step: int | None = None
    since_checkpoint_s: float | None = None
    read_input: bool = False
    asked_to_stop: bool = False
    evaluating: bool = False  # it was evaluating when it ended
    loaded: bool = False  # a framework: it was about to train
    refused: bool = False  # could not be put back to its checkpoint, though nobody has edited it
    filled_by: str = ""  # a part of the input pipeline that keeps more than there is, as it is written in the script
    restart: RestartAdvice | None = (
        None  # what its cause says about starting again; None: it would fail again the same way
    )

    @property
    def kind(self) -> RestartKind | None:
        return self.restart.kind if self.restart is not None else None

    @property
    def of_memory(self) -> bool:
        return self.kind in FOR_MEMORY


def decide(attempts: Sequence[Attempt], policy: Policy, max_restarts: int) -> Decision:
    """RESTART with what the next attempt needs in `restart`; or STOP with the reason.

    NOTE is a stop that nobody needs to be told of: nothing else was to be expected.
    """
    last, number = attempts[-1], len(attempts) + 1
    trained = any(attempt.step is not None or _was_in_its_first_step(attempt) for attempt in attempts)
    if policy != Policy.PROTECT or max_restarts <= 0 or not trained or last.asked_to_stop:
        is_told = policy == Policy.PROTECT and max_restarts > 0 and last.loaded and not last.asked_to_stop
        if is_told and last.killed and last.kind is RestartKind.AGAIN:
            return _stop(DecisionKind.STOP, last, "it was not seen training yet")
        return _stop(DecisionKind.NOTE, last, "nothing to start again")
    if last.refused and len(attempts) > 1 and not last.read_input:
        return _from_the_beginning(attempts)
    if last.restart is None or not _may_help(last):
        kind = DecisionKind.STOP if len(attempts) > 1 else DecisionKind.NOTE
        return _stop(kind, last, "it would fail again the same way")
    if last.read_input:
        return _stop(DecisionKind.STOP, last, "it has read its standard input, which is gone")
    if last.checkpoint is None and last.seconds > CHEAP_S:
        return _stop(DecisionKind.STOP, last, f"there is no checkpoint, and {_span(last.seconds)} would be done again")
    in_a_row = _in_a_row(attempts)
    if in_a_row >= max_restarts:
        times = "once" if in_a_row == 1 else f"{in_a_row} times"
        return _stop(DecisionKind.STOP, last, f"started again {times} without a newer checkpoint")
    if reason := _would_not_help(attempts):
        return _stop(DecisionKind.STOP, last, reason)
    k = _next_k(last)
    pause_s = PAUSES_S[min(in_a_row, len(PAUSES_S) - 1)]
    return Decision(
        DecisionKind.RESTART,
        f"restart:{number}",
        _told(last, k, number),
        last.cause,
        Restart(pause_s, k if k > 1 else None),
    )


def _from_the_beginning(attempts: Sequence[Attempt]) -> Decision:
    last, seconds, number = attempts[-1], sum(attempt.seconds for attempt in attempts), len(attempts) + 1
    if any(attempt.refused for attempt in attempts[:-1]):
        return _stop(DecisionKind.STOP, last, "it could not go on before")
    if seconds > CHEAP_S:
        return _stop(DecisionKind.STOP, last, f"{_span(seconds)} would be done again")
    text = f"{_what(last)}; starting again from the beginning ({_span(seconds)} lost), attempt {number}"
    restart = Restart(PAUSES_S[0], last.k if last.k > 1 else None, anew=True)
    return Decision(DecisionKind.RESTART, f"restart:{number}", text, last.cause, restart)


def _may_help(last: Attempt) -> bool:
    """Whether another attempt would be any different, by the cause alone.

    An out-of-memory exception comes again at the same batch, unless the steps get smaller; a kill may have come from
    what else ran on the machine.
    """
    if last.kind is RestartKind.SMALLER_STEPS_ON_GPU:
        in_vain = last.evaluating or (last.rescue_failed and not last.killed)
        return last.can_shrink and (last.needed_k is not None or (last.begun and not in_vain))
    if last.of_memory:
        return last.killed or last.needed_k is not None
    return last.killed or last.kind is not RestartKind.ONCE_IF_KILLED


def _next_k(last: Attempt) -> int:
    if not last.of_memory:
        return last.k
    return last.needed_k or last.k * 2


def _was_in_its_first_step(attempt: Attempt) -> bool:
    return _too_big(attempt) or (attempt.begun and attempt.killed and attempt.kind is RestartKind.AGAIN)


def _too_big(attempt: Attempt) -> bool:
    """Its very first step ran out of memory, and can be run in smaller pieces."""
    return (attempt.begun or attempt.needed_k is not None) and attempt.can_shrink and attempt.of_memory


def _in_a_row(attempts: Sequence[Attempt]) -> int:
    """Restarts so far since the last one that brought a newer checkpoint."""
    count = 0
    for before, after in zip(reversed(attempts[:-1]), reversed(attempts[1:]), strict=True):
        if after.checkpoint is not None and (before.checkpoint is None or after.checkpoint > before.checkpoint):
            break
        count += 1
    return count


def _would_not_help(attempts: Sequence[Attempt]) -> str:
    """The same remedy at the same place a second time."""
    last = attempts[-1]
    if last.of_memory and last.needed_k is None and last.k * 2 > LARGEST_K:
        return f"steps in {last.k} micro-batches still need too much memory"
    if last.of_memory and last.filled_by:
        return f"{last.filled_by} keeps more than there is, which smaller steps do not help"
    leaked = last.kind is RestartKind.EMPTY_MEMORY
    if leaked and len(attempts) > 1 and attempts[-2].kind is last.kind and _gains_little(attempts):
        return "it gets hardly further each time"
    if last.k > 1 and any(_evaluated_there_too(last, before) for before in attempts[:-1]):
        return "memory runs out while it evaluates, which smaller training steps do not help"
    if last.of_memory and len(attempts) > 1 and all(_took_no_step(attempt) for attempt in attempts[-2:]):
        return "it needs too much memory outside of its steps, which smaller ones do not help"
    for before in attempts[:-1]:
        if before.cause != last.cause or _got_further(last, before):
            continue
        if last.kind is RestartKind.SMALLER_STEPS_ON_GPU:
            return "it ran out of GPU memory there before, and smaller steps did not help"
        if last.kind in PASSES_ONCE or leaked:
            return "it failed the same way there before"
        if last.of_memory and last.k <= before.k:
            return "smaller steps could not be had, and it needs as much memory as before"
    return ""


def _evaluated_there_too(last: Attempt, before: Attempt) -> bool:
    both = last.evaluating and before.evaluating and last.of_memory and before.of_memory
    return both and not _got_further(last, before)


def _got_further(last: Attempt, before: Attempt) -> bool:
    return last.step is not None and last.step > (before.step or 0)


def _took_no_step(attempt: Attempt) -> bool:
    return attempt.of_memory and attempt.step is None and not attempt.begun


def _gains_little(attempts: Sequence[Attempt]) -> bool:
    reached = [0, *(attempt.step or 0 for attempt in attempts)]
    return 0 < reached[-1] - reached[-2] < LEAST_GAIN * (reached[-2] - reached[-3])


def _stop(kind: DecisionKind, last: Attempt, reason: str) -> Decision:
    return Decision(kind, "restart", f"{_what(last)}; not started again: {reason}", last.cause)


def _told(last: Attempt, k: int, number: int) -> str:
    what = _what(last)
    shrinks = last.can_shrink and (k > last.k or last.needed_k is not None)
    smaller = f" in {k} micro-batches a step" if shrinks and last.of_memory else ""
    if last.checkpoint is None:
        return f"{what}; starting again from the beginning{smaller} ({_span(last.seconds)} lost), attempt {number}"
    if last.checkpoint_step is None:
        return f"{what}; starting again from the last checkpoint{smaller}, attempt {number}"
    steps = max(0, (last.step or 0) - last.checkpoint_step)
    seconds = f", {_span(last.since_checkpoint_s)}" if last.since_checkpoint_s is not None else ""
    lost = f"{steps} step{'' if steps == 1 else 's'}{seconds} lost"
    return f"{what}; starting again from step {last.checkpoint_step}{smaller} ({lost}), attempt {number}"


def _what(last: Attempt) -> str:
    if last.refused:
        return "it could not go on from its checkpoint"
    at = f"at step {last.step}" if last.step is not None else "before its first step"
    if last.kind is RestartKind.SMALLER_STEPS_ON_GPU and last.begun and last.step is None:
        at = "in its first step"
    words = last.restart.words if last.restart is not None else "failed"
    return f"{words} {at}"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
