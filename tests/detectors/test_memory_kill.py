"""Killed for memory, or not: by evidence, and never from a neighbour's misfortune."""

from __future__ import annotations

from holdfast.detectors.memory_kill import find
from tests.story import GIB, kernel, story

MEMCG = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task_memcg=/job,task=python,pid=100,uid=0"
GLOBAL = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=python,pid=100,uid=1000"


def test_the_kernels_log_tells_the_container_from_the_machine() -> None:
    at_limit = find(story(137, 9, events=[kernel(MEMCG)]))
    on_host = find(story(137, 9, events=[kernel(GLOBAL)]))
    assert at_limit is not None and at_limit.cause == "container-memory-limit" and at_limit.confidence > 0.95
    assert on_host is not None and on_host.cause == "host-memory-exhausted" and on_host.confidence > 0.95


def test_a_neighbours_kill_is_not_ours() -> None:
    other = GLOBAL.replace("pid=100", "pid=7777").replace("task_memcg=/user.slice", "task_memcg=/other")
    assert find(story(137, 9, events=[kernel(other)], host__oom_kill_count=[3, 4])) is None


def test_a_moved_counter_proves_nothing_where_the_log_was_read_and_is_silent() -> None:
    assert find(story(1, None, host__oom_kill_count=[3, 4])) is None


def test_without_the_log_the_cgroups_counter_decides() -> None:
    window = story(
        137, 9, kernel_log=False, cgroup__oom_kill_count=[0, 1], host__oom_kill_count=[0, 1],
        cgroup__memory_limit_bytes=[GIB, GIB], cgroup__memory_working_bytes=[0.2 * GIB, 0.97 * GIB],
    )  # fmt: skip
    found = find(window)
    assert found is not None and found.cause == "container-memory-limit" and found.confidence > 0.9


def test_without_the_log_and_a_limit_the_machine_was_short() -> None:
    window = story(
        137, 9, kernel_log=False, host__oom_kill_count=[0, 1],
        host__memory_total_bytes=[16 * GIB] * 2, host__memory_available_bytes=[9 * GIB, 0.2 * GIB],
    )  # fmt: skip
    found = find(window)
    assert found is not None and found.cause == "host-memory-exhausted" and 0.5 < found.confidence < 0.9


def test_without_the_log_an_ordinary_error_is_hardly_blamed_on_the_machines_counter() -> None:
    found = find(story(1, None, kernel_log=False, host__oom_kill_count=[0, 1]))
    assert found is not None and found.confidence < 0.5


def test_a_userspace_guard_is_suspected_when_memory_was_gone_and_the_kernel_at_rest() -> None:
    window = story(
        137, 9, host__oom_kill_count=[5, 5], host__memory_total_bytes=[16 * GIB] * 2,
        host__memory_available_bytes=[9 * GIB, 0.5 * GIB],
    )  # fmt: skip
    found = find(window)
    assert found is not None and any("earlyoom" in item.text for item in found.evidence)


def test_a_worker_killed_inside_a_container_is_matched_by_name_since_pids_differ() -> None:
    from dataclasses import replace

    window = story(1, None, events=[kernel(MEMCG.replace("pid=100", "pid=54321").replace("/job", "/docker/x"))])
    inside = [
        replace(event, data={**event.data, "pid_namespace": "pid:[4026532000]"}) if event.kind == "machine" else event
        for event in window.events()
    ]
    from holdfast.vocabulary import Window

    found = find(Window(inside))
    assert found is not None and found.cause == "container-memory-limit"


def test_a_run_that_finished_was_not_killed() -> None:
    assert find(story(0, None, events=[kernel(MEMCG)])) is None


OWN = "/box/holdfast-job-7-1"


def test_a_limit_above_the_jobs_own_group_is_still_the_containers() -> None:
    line = MEMCG.replace("oom_memcg=/job,task_memcg=/job", f"oom_memcg=/box,task_memcg={OWN}")
    found = find(story(137, 9, events=[kernel(line)]))
    assert found is not None and found.cause == "container-memory-limit"


def test_the_line_that_holdfast_drew_is_the_machines_or_the_budget() -> None:
    line = MEMCG.replace("oom_memcg=/job,task_memcg=/job", f"oom_memcg={OWN},task_memcg={OWN}")
    on_host = find(story(137, 9, events=[kernel(line)]))
    at_budget = find(story(137, 9, events=[kernel(line)], job__memory_budget_bytes=[GIB, GIB]))
    assert on_host is not None and on_host.cause == "host-memory-exhausted"
    assert at_budget is not None and at_budget.cause == "host-memory-exhausted"
    assert any("budget is 1 GiB" in item.text for item in at_budget.evidence), at_budget.evidence


def test_a_rise_too_sudden_to_be_seen_is_told_by_which_end_was_nearest() -> None:
    line = MEMCG.replace("oom_memcg=/job,task_memcg=/job", f"oom_memcg={OWN},task_memcg={OWN}")
    seen = {"cgroup__memory_limit_bytes": [4 * GIB] * 2, "cgroup__memory_working_bytes": [0.2 * GIB, 0.3 * GIB]}
    roomy = find(story(137, 9, events=[kernel(line)], **seen, host__memory_available_bytes=[20 * GIB] * 2))
    short = find(story(137, 9, events=[kernel(line)], **seen, host__memory_available_bytes=[9 * GIB, 2 * GIB]))
    budget = {"job__memory_budget_bytes": [GIB] * 2, "host__memory_available_bytes": [20 * GIB] * 2}
    at_budget = find(story(137, 9, events=[kernel(line)], **seen, **budget))
    assert roomy is not None and roomy.cause == "container-memory-limit"
    assert short is not None and short.cause == "host-memory-exhausted"
    assert at_budget is not None and at_budget.cause == "host-memory-exhausted"


def test_the_line_that_holdfast_drew_below_a_containers_limit_is_the_containers() -> None:
    line = MEMCG.replace("oom_memcg=/job,task_memcg=/job", f"oom_memcg={OWN},task_memcg={OWN}")
    window = story(
        137, 9, events=[kernel(line)],
        cgroup__memory_limit_bytes=[GIB, GIB], cgroup__memory_working_bytes=[0.2 * GIB, 0.97 * GIB],
    )  # fmt: skip
    found = find(window)
    assert found is not None and found.cause == "container-memory-limit"
