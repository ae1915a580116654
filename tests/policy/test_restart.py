"""By cause and history: started again, or left as it is, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.causes import CAUSES
from holdfast.policy.restart import CHEAP_S, LARGEST_K, Attempt, decide
from holdfast.vocabulary import Decision

KILLED = Attempt("killed", True, 1200, 3600.0, checkpoint=7, checkpoint_step=1180, since_checkpoint_s=12.4)
FOR_MEMORY = replace(KILLED, cause="container-memory-limit", can_shrink=True)
CRASHED = replace(KILLED, cause="native-crash", killed=False)


def _decide(*attempts: Attempt, policy: str = "protect", most: int = 3) -> Decision:
    """With what the cause of each says about starting again, as the supervisor hands it over."""
    records = [CAUSES.get(attempt.cause) for attempt in attempts]
    known = [
        replace(a, restart=record.restart if record else None) for a, record in zip(attempts, records, strict=True)
    ]
    return decide(known, policy, most)


def test_the_line_says_why_and_what_was_lost() -> None:
    assert _decide(KILLED).text == (
        "killed by somebody at step 1200; starting again from step 1180 (20 steps, 12 s lost), attempt 2"
    )
    assert _decide(replace(FOR_MEMORY, step=1181)).text == (
        "killed for memory at step 1181; starting again from step 1180 in 2 micro-batches a step "
        "(1 step, 12 s lost), attempt 2"
    )


@pytest.mark.parametrize(
    "cause", ["unhandled-exception", "disk-full", "gpu-memory-exhausted", "missing-file", "data-exhausted", ""]
)
def test_what_would_fail_again_is_left_as_it_is(cause: str) -> None:
    assert _decide(replace(KILLED, cause=cause, killed=False)).kind == "note"
    assert _decide(KILLED, replace(KILLED, cause=cause, killed=False)).kind == "stop"


def test_an_allocation_that_python_was_refused_is_a_plain_error() -> None:
    assert _decide(replace(FOR_MEMORY, cause="host-memory-exhausted", killed=False)).kind == "note"


@pytest.mark.parametrize("policy", ["observe", "advise"])
def test_only_protect_acts(policy: str) -> None:
    assert _decide(KILLED, policy=policy).kind == "note"


def test_what_was_never_seen_training_or_was_asked_to_stop_is_no_matter_for_us() -> None:
    assert _decide(replace(KILLED, step=None)).kind == "note"
    assert _decide(replace(KILLED, asked_to_stop=True)).kind == "note"


def test_one_killed_on_its_way_back_is_started_again_all_the_same() -> None:
    again = _decide(KILLED, replace(KILLED, step=None, since_checkpoint_s=3.0))
    assert again.text == (
        "killed by somebody before its first step; starting again from step 1180 (0 steps, 3 s lost), attempt 3"
    )


def test_standard_input_that_was_read_is_gone() -> None:
    assert "standard input" in _decide(replace(KILLED, read_input=True)).text


def test_without_a_checkpoint_only_little_is_done_again() -> None:
    bare = replace(KILLED, checkpoint=None, checkpoint_step=None, since_checkpoint_s=None)
    assert _decide(replace(bare, seconds=CHEAP_S)).kind == "restart"
    long = _decide(replace(bare, seconds=CHEAP_S + 1))
    assert long.kind == "stop" and "no checkpoint" in long.text


def test_restarts_in_a_row_without_a_newer_checkpoint_are_counted() -> None:
    assert [_decide(*[KILLED] * n).kind for n in (1, 2, 3, 4)] == ["restart"] * 3 + ["stop"]
    assert _decide(*[KILLED] * 4, replace(KILLED, checkpoint=8)).kind == "restart"
    assert _decide(KILLED, most=0).kind == "note"


def test_the_pause_grows_and_is_short_again_after_progress() -> None:
    pauses = [_decide(*[KILLED] * n).restart.pause_s for n in (1, 2, 3)]
    assert pauses == sorted(set(pauses))
    assert _decide(*[KILLED] * 3, replace(KILLED, checkpoint=8)).restart.pause_s == pauses[0]


def test_smaller_steps_do_not_help_where_the_input_keeps_more_than_there_is() -> None:
    stopped = _decide(replace(FOR_MEMORY, filled_by="dataset.prefetch(200)"))
    assert stopped.kind == "stop" and "dataset.prefetch(200) keeps more than there is" in stopped.text
    assert _decide(replace(KILLED, filled_by="dataset.prefetch(200)")).kind == "restart", "killed by somebody"


def test_after_a_kill_for_memory_the_micro_batches_get_smaller_each_time() -> None:
    assert _decide(FOR_MEMORY).restart.k == 2
    assert _decide(FOR_MEMORY, replace(FOR_MEMORY, k=2)).restart.k == 4
    assert _decide(KILLED).restart.k is None
    assert _decide(replace(KILLED, k=4)).restart.k == 4


def test_never_twice_with_the_same_micro_batches_at_the_same_place() -> None:
    again = _decide(FOR_MEMORY, FOR_MEMORY)  # asked for 2, and the step was still whole
    assert again.kind == "stop" and "could not be had" in again.text


def test_where_steps_cannot_be_made_smaller_that_is_not_promised() -> None:
    bare = replace(FOR_MEMORY, can_shrink=False)
    assert "micro-batches" not in _decide(bare).text
    assert _decide(bare, bare).kind == "stop"


def test_getting_further_or_smaller_is_a_reason_to_go_on() -> None:
    assert _decide(FOR_MEMORY, replace(FOR_MEMORY, step=5000, checkpoint=9)).kind == "restart"
    assert _decide(replace(FOR_MEMORY, k=LARGEST_K)).kind == "stop"


def test_a_crash_may_pass_once_at_one_place() -> None:
    assert _decide(CRASHED).kind == "restart"
    assert _decide(CRASHED, CRASHED).kind == "stop"
    assert _decide(CRASHED, replace(CRASHED, step=1190)).kind == "stop"
    assert _decide(CRASHED, replace(CRASHED, step=1900)).kind == "restart"
    assert _decide(CRASHED, KILLED, CRASHED).kind == "stop"


def test_killed_for_memory_while_loading_again_is_told_as_such_and_tried_once() -> None:
    loading = replace(KILLED, cause="dataset-in-memory", step=None)
    assert _decide(loading).kind == "note", "it never trained"
    assert _decide(FOR_MEMORY, loading).text.startswith("killed for memory before its first step; starting again")
    assert _decide(FOR_MEMORY, loading, loading).kind == "stop"
    assert _decide(FOR_MEMORY, replace(loading, killed=False)).kind == "stop"


def test_smaller_steps_are_no_help_where_memory_went_outside_of_them_twice() -> None:
    predicts = replace(FOR_MEMORY, step=None, k=2)
    assert _decide(FOR_MEMORY, predicts).kind == "restart"
    assert _decide(FOR_MEMORY, predicts, replace(predicts, k=4)).kind == "stop"
    assert _decide(FOR_MEMORY, predicts, replace(predicts, k=4, begun=True)).kind == "restart"


def test_memory_that_runs_out_while_evaluating_is_not_met_with_ever_smaller_training_steps() -> None:
    first = replace(FOR_MEMORY, evaluating=True)
    again = replace(first, k=2)
    assert _decide(first).kind == "restart"
    assert _decide(first, again).kind == "stop"
    assert _decide(first, replace(again, step=1300)).kind == "restart", "it got further"
    assert _decide(first, replace(again, evaluating=False)).kind == "restart"


def test_a_leak_starts_afresh_as_long_as_there_is_progress() -> None:
    leak = replace(FOR_MEMORY, cause="host-memory-leak")
    assert _decide(leak).restart.k is None
    assert _decide(leak, replace(leak, step=2400, checkpoint=14)).kind == "restart"
    assert _decide(leak, leak).kind == "stop"


def test_a_leak_is_outrun_as_long_as_each_attempt_gets_well_further() -> None:
    first = replace(KILLED, cause="host-memory-leak", step=600, checkpoint=5, checkpoint_step=590)
    assert _decide(first, replace(first, step=1180, checkpoint=11)).kind == "restart"
    hardly = _decide(first, replace(first, step=660, checkpoint=6))
    assert hardly.kind == "stop" and "it gets hardly further each time" in hardly.text


def test_a_first_step_that_was_too_big_is_started_again_smaller() -> None:
    first = Attempt("container-memory-limit", True, None, 20.0, begun=True, can_shrink=True)
    decision = _decide(first)
    assert (decision.kind, decision.restart.k) == ("restart", 2)
    assert "before its first step; starting again from the beginning in 2 micro-batches" in decision.text
    again = _decide(first, replace(first, k=2))
    assert (again.kind, again.restart.k) == ("restart", 4), "never twice with the same"


@pytest.mark.parametrize("change", [{"begun": False}, {"can_shrink": False}])
def test_what_had_not_begun_to_train_or_cannot_be_had_smaller_is_not(change: dict[str, object]) -> None:
    first = Attempt("container-memory-limit", True, None, 20.0, begun=True, can_shrink=True)
    assert _decide(replace(first, **change)).kind == "note"  # type: ignore[arg-type]


# -- on a GPU, where running out of memory is an exception or an abort

ON_GPU = replace(FOR_MEMORY, cause="gpu-memory-exhausted", killed=False, begun=True)
MEASURED = replace(ON_GPU, needed_k=5)


@pytest.mark.parametrize("killed", [False, True], ids=["by an exception", "by an abort"])
def test_out_of_gpu_memory_is_started_again_with_exactly_what_was_measured(killed: bool) -> None:
    decision = _decide(replace(MEASURED, killed=killed, k=2))
    assert (decision.kind, decision.restart.k) == ("restart", 5)
    assert decision.text == (
        "ran out of GPU memory at step 1200; starting again from step 1180 in 5 micro-batches a step "
        "(20 steps, 12 s lost), attempt 2"
    )


def test_a_first_step_too_big_for_the_gpu_begins_again_in_pieces() -> None:
    first = Attempt("gpu-memory-exhausted", False, None, 20.0, begun=True, can_shrink=True, needed_k=3, checkpoint=None)
    assert _decide(first).text == (
        "ran out of GPU memory in its first step; starting again from the beginning in 3 micro-batches a step "
        "(20 s lost), attempt 2"
    )


def test_one_restart_for_gpu_memory_at_one_place_unless_it_got_further() -> None:
    again = _decide(MEASURED, replace(MEASURED, k=5, needed_k=9))
    assert again.kind == "stop" and "smaller steps did not help" in again.text
    assert _decide(MEASURED, replace(MEASURED, k=5, needed_k=9, step=1300)).restart.k == 9


def test_without_a_measurement_gpu_steps_are_halved_once() -> None:
    assert _decide(ON_GPU).restart.k == 2
    assert _decide(ON_GPU, replace(ON_GPU, k=2)).kind == "stop"


@pytest.mark.parametrize(
    "change",
    [{"can_shrink": False}, {"rescue_failed": True}, {"evaluating": True}, {"begun": False}],
    ids=["nothing can shrink", "smaller was tried in the process", "while evaluating", "outside of a step"],
)
def test_an_exception_for_lack_of_gpu_memory_that_smaller_steps_do_not_mend_is_left(change: dict[str, object]) -> None:
    assert _decide(replace(ON_GPU, **change)).kind == "note"  # type: ignore[arg-type]


def test_an_abort_after_a_rescue_on_the_gpu_is_started_again_smaller() -> None:
    assert _decide(replace(ON_GPU, rescue_failed=True, killed=True, k=2)).restart.k == 4
    assert _decide(replace(ON_GPU, can_shrink=False, killed=True)).kind == "note"


def test_what_was_measured_comes_before_doubling_on_the_host_too() -> None:
    measured = replace(FOR_MEMORY, needed_k=7)
    assert _decide(measured).restart.k == 7
    assert _decide(replace(measured, cause="host-memory-exhausted", killed=False)).restart.k == 7


REFUSED = replace(KILLED, cause="checkpoint-mismatch", killed=False, step=None, seconds=4.0, refused=True)


def test_a_state_that_cannot_be_put_back_costs_the_work_not_the_run() -> None:
    began = replace(KILLED, seconds=60.0)
    again = _decide(began, REFUSED)
    assert again.kind == "restart" and again.restart is not None and again.restart.anew
    assert again.text == (
        "it could not go on from its checkpoint; starting again from the beginning (64 s lost), attempt 3"
    )
    assert _decide(began, REFUSED, began, REFUSED).kind == "stop"  # once


def test_hours_of_work_are_not_done_again_without_asking() -> None:
    left = _decide(replace(KILLED, seconds=7200.0), REFUSED)
    assert left.kind == "stop" and left.restart is None
    assert left.text == "it could not go on from its checkpoint; not started again: 2.0 h would be done again"


def test_a_script_that_was_edited_is_not_begun_anew() -> None:
    assert _decide(KILLED, replace(REFUSED, refused=False)).kind == "stop"


def test_killed_in_its_first_step_it_is_started_again() -> None:
    first = replace(KILLED, step=None, begun=True, checkpoint=None, checkpoint_step=None, seconds=9.0)
    assert _decide(first).kind == "restart"


def test_killed_while_it_gets_ready_to_train_it_is_said_that_nothing_is_done() -> None:
    loading = _decide(replace(KILLED, step=None, loaded=True))
    assert loading.kind == "stop" and loading.text == (
        "killed by somebody before its first step; not started again: it was not seen training yet"
    )
