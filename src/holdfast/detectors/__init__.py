"""Window -> Finding | None. One kind of failure a file; thresholds in a frozen dataclass at its top."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from holdfast.detectors.exhaustion import EDGES, find_edge, pace_s
from holdfast.detectors.runner import Detector
from holdfast.vocabulary import Finding, Window
from holdfast.windows import Reader, all_of


def _detector(name: str, function: str) -> Detector:
    """`function` is MODULE.NAME in this folder: so a new detector is its file and a line below."""
    module, _, attribute = function.rpartition(".")
    find = getattr(import_module(f"{__name__}.{module}"), attribute)
    if not isinstance(find, Reader):
        raise TypeError(f"{function} does not declare what it reads: put @reads(…) of holdfast.windows above it")
    return Detector(name, find, find.reads)


NUMERICS = (
    _detector("non-finite", "numerics.non_finite.find"),
    _detector("output-loss-mismatch", "numerics.output_and_loss.find"),
    _detector("unscaled-input", "numerics.scale.find_input"),
    _detector("unscaled-target", "numerics.scale.find_target"),
    _detector("bad-initialization", "numerics.initial_weights.find"),
    _detector("parameters-not-trained", "numerics.untrained.find"),
    _detector("learning-rate-too-high", "numerics.learning_rate.find"),
    _detector("learning-rate-too-low", "numerics.low_rate.find"),
    _detector("vanishing-gradients", "numerics.gradients.find_vanishing"),
    _detector("exploding-gradients", "numerics.gradients.find_exploding"),
    _detector("dead-activations", "numerics.dead_units.find"),
    _detector("uncleared-gradients", "numerics.uncleared_gradients.find"),
    _detector("no-activation", "numerics.no_activation.find"),
    _detector("data-not-shuffled", "numerics.shuffling.find"),
    _detector("constant-input", "numerics.constant_input.find"),
    _detector("batch-too-small-for-normalization", "numerics.batch_of_one.find"),
    _detector("mixed-precision-overflow", "numerics.hidden_overflow.find"),
    _detector("bad-labels", "fed_batches.find_labels"),
)
# Memory first: the cheapest, and the ones whose warning must not wait for anything.
WHILE_RUNNING: tuple[Detector, ...] = (
    *(Detector(f"filling: {edge.what}", partial(find_edge, edge=edge), edge.reads) for edge in EDGES),
    _detector("host-memory-leak", "leak.find_host"),
    _detector("gpu-memory-leak", "leak.find_gpu"),
    _detector("input-starvation", "starvation.find"),
    _detector("data-exhausted", "data_exhausted.find"),
    _detector("gpu-not-used", "gpu_not_used.find"),
    _detector("cpu-oversubscribed", "cpu_oversubscribed.find"),
    _detector("hang", "hang.find"),
    _detector("step-slowdown", "step_slowdown.find"),
    _detector("straggler", "straggler.find"),
    _detector("gpu-throttled", "gpu_throttled.find"),
    _detector("gpu-link", "gpu_link.find"),
    _detector("gpu-memory-errors", "gpu_memory_errors.find"),
    *NUMERICS,
)
# Right after the script has ended: a run that stops early often ends within the second.
ONCE_AFTER_EXIT: tuple[Detector, ...] = (_detector("data-exhausted", "data_exhausted.find"), *NUMERICS)
# How a run ended: for `why`, and for judging an attempt.
FOR_DIAGNOSIS: tuple[Detector, ...] = (
    _detector("first-rank", "first_rank.find"),
    _detector("memory-kill", "memory_kill.find"),
    _detector("killed-while-loading", "killed_while_loading.find"),
    _detector("uncounted-leak", "uncounted_leak.find"),
    _detector("guard-stop", "guard_stop.find"),
    _detector("asked-to-stop", "ended_from_outside.find_asked"),
    _detector("killed", "ended_from_outside.find_killed"),
    _detector("checkpoint-refused", "checkpoint_refused.find"),
    _detector("native-crash", "native_crash.find"),
    _detector("budget-crash", "budget_crash.find"),
    _detector("reported-out-of-memory", "reported_out_of_memory.find"),
    _detector("disk-full", "limit_reached.find_disk"),
    _detector("shared-memory-exhausted", "limit_reached.find_shared_memory"),
    _detector("too-many-open-files", "limit_reached.find_open_files"),
    _detector("too-many-processes", "limit_reached.find_processes"),
    _detector("machine-down", "machine_down.find"),
    _detector("data-exhausted", "data_exhausted.find_ending"),
    _detector("leak", "leak.find_ending"),
    _detector("hang", "hang.find_ending"),
    _detector("non-finite", "numerics.non_finite.find"),
    _detector("batch-too-small-for-normalization", "numerics.batch_of_one.find"),
    _detector("mixed-precision-overflow", "numerics.hidden_overflow.find"),
    _detector("bad-labels", "fed_batches.find_labels_at_the_end"),
    _detector("form-changed", "fed_batches.find_form"),
)
# What the window of each has to hold.
READ_WHILE_RUNNING = all_of((pace_s.reads, *(one.reads for one in (*WHILE_RUNNING, *ONCE_AFTER_EXIT))))
READ_AT_THE_END = all_of(one.reads for one in FOR_DIAGNOSIS)


def find_endings(window: Window) -> list[Finding]:
    """What ended a run, by every detector in turn; one that raises is heard. `runner` calls each alone."""
    return [finding for detector in FOR_DIAGNOSIS for finding in detector.findings(window)]
