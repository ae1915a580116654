"""What the record saw settles what the text only suggests."""

from __future__ import annotations

from dataclasses import replace

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose, over_attempts
from holdfast.vocabulary import Diagnosis, Event, Evidence, Finding, Window
from tests.story import GIB, START, kernel, story

SHELL = {
    "stderr": b"launch.sh: line 2: 18336 Killed                  python train.py --lr 0.1\n",
    "stdout": b"step 60\nexit code 137\n",
}
HELLO = Event("inside.hello", START + 2, {"pid": 101})
LOGGED = b"""\
ERROR:root:run failed
Traceback (most recent call last):
  File "/home/me/train.py", line 13, in <module>
    sys.exit(main())
  File "/home/me/train.py", line 4, in main
    rows = np.load("rows.npy")
FileNotFoundError: [Errno 2] No such file or directory: 'rows.npy'
"""


def verdict(window: Window) -> Diagnosis:
    return diagnose(window, find_endings(window))


def test_killed_by_somebody_below_a_shell_is_not_put_on_memory() -> None:
    quiet: list[float | None] = [3.0] * 60
    room: list[float | None] = [20 * GIB] * 60
    window = story(
        137, None, SHELL, [HELLO], host__oom_kill_count=quiet, host__memory_available_bytes=room,
        host__memory_total_bytes=room,
    )  # fmt: skip
    answer = verdict(window)
    assert answer.cause is not None and answer.cause.id == "killed" and answer.cause.confidence >= 0.8


def test_killed_for_memory_below_a_shell_still_is() -> None:
    line = "Memory cgroup out of memory: Killed process 101 (python) total-vm:9kB, anon-rss:8kB"
    child = Event("process.appeared", START + 1, {"pid": 101, "name": "python"})
    window = story(137, None, SHELL, [HELLO, child, kernel(line)], host__oom_kill_count=[3.0] * 59 + [4.0])
    answer = verdict(window)
    assert answer.cause is not None and answer.cause.id == "container-memory-limit"


def test_a_137_from_elsewhere_is_no_certain_kill_here() -> None:
    """`srun` and `docker run` pass it on, and the kernel that knows is another one."""
    answer = verdict(story(137, None, {"stdout": b"srun: task 0: exit code 137\n"}, host__oom_kill_count=[3.0] * 60))
    assert answer.cause is not None and answer.cause.id == "killed" and answer.cause.confidence < 0.8


def test_one_kill_told_twice_is_not_twice_as_likely() -> None:
    answer = verdict(story(137, None, SHELL))
    guess = [cause for cause in (answer.cause, *answer.also) if cause is not None and "memory" in cause.id]
    assert len(guess) == 1 and guess[0].confidence < 0.6


def test_an_exception_logged_at_the_very_end_explains_an_exit_code_of_the_scripts_own() -> None:
    answer = verdict(story(3, None, {"stderr": LOGGED, "stdout": b"summary: crashed\n"}))
    assert answer.cause is not None and answer.cause.id == "missing-file" and answer.cause.confidence < 0.8


def test_an_exception_that_was_survived_does_not() -> None:
    went_on = LOGGED + b"".join(b"epoch %d done\n" % i for i in range(8))
    assert verdict(story(3, None, {"stderr": went_on})).cause is None


def test_a_leak_seen_in_an_earlier_attempt_explains_the_kill_of_the_last() -> None:
    line = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"
    killed = story(137, 9, events=[kernel(line)])
    leak = Finding("host-memory-leak", 0.85, (Evidence("memory grows 4 MiB a step", "telemetry"),))
    first = diagnose(killed, [*find_endings(killed), leak])
    answer = over_attempts([first, verdict(killed)], restarts=1)
    assert answer.cause is not None and answer.cause.id == "host-memory-leak"
    assert any("kernel log" in item.text for item in answer.cause.evidence)
    loading = diagnose(killed, [*find_endings(killed), Finding("dataset-in-memory", 0.72, ())])
    assert loading.cause is not None and loading.cause.id == "dataset-in-memory"
    answer = over_attempts([first, loading], restarts=1)
    assert answer.cause is not None and answer.cause.id == "host-memory-leak", "the data had been loaded before"
    other = replace(verdict(killed), cause=verdict(story(1, None, {"stderr": LOGGED})).cause)
    answer = over_attempts([first, other], restarts=1)
    assert answer.cause is not None and answer.cause.id == "missing-file", "it explains no other end"


def test_a_warning_signal_that_was_let_through_is_named() -> None:
    warned = Event("preemption", START + 58, {"signal": "SIGUSR1"})
    answer = verdict(story(143, 15, events=[warned]))
    assert answer.cause is not None and answer.cause.id == "terminated"
    assert any("SIGUSR1" in item.text for item in answer.cause.evidence)


def test_the_time_limit_of_timeout_is_told_from_a_code_of_the_scripts_own() -> None:
    launcher = Event("process.appeared", START, {"pid": 100, "name": "timeout"})
    answer = verdict(story(124, None, events=[launcher]))
    assert answer.outcome == "stopped" and answer.cause is not None and answer.cause.id == "terminated"
    assert verdict(story(124, None)).cause is None


OUT_ON_THE_CPU = b"""\
W0000 00:00:1794782226.831540 13089 op_kernel.cc:1858] OP_REQUIRES failed at cwise_ops_common.cc:82 : RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[1500000,1500000,4] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu
ERROR:root:the run failed
Traceback (most recent call last):
  File "/home/me/train.py", line 10, in distances
    return tf.reduce_sum((points[:, None, :] - points[None, :, :]) ** 2, -1)
  File "/opt/venv/lib/python3.11/site-packages/tensorflow/python/framework/ops.py", line 6027, in raise_from_not_ok_status
    raise core._status_to_exception(e) from None
tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__Sub_device_/job:localhost/replica:0/task:0/device:CPU:0}} OOM when allocating tensor with shape[1500000,1500000,4] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu [Op:Sub] name:
"""


def test_what_the_processor_could_not_allocate_is_not_put_on_a_card() -> None:
    for code in (1, 3):
        answer = verdict(story(code, None, {"stderr": OUT_ON_THE_CPU}))
        assert answer.cause is not None and answer.cause.id == "host-memory-exhausted"
        assert not any("gpu" in cause.id for cause in answer.also)


def test_what_the_last_attempt_hardly_tells_an_earlier_one_may_have_told() -> None:
    told = verdict(story(1, None, {"stderr": LOGGED}))
    silent = verdict(story(1))
    assert told.cause is not None and silent.cause is None
    answer = over_attempts([told, silent], restarts=1)
    assert answer.outcome == "failed" and answer.cause is not None and answer.cause.id == "missing-file"
    stopped = verdict(story(143, 15))
    answer = over_attempts([told, stopped], restarts=1)
    assert answer.cause is not None and answer.cause.id == "terminated", "somebody ended the second one"


CHECKED = b"""\
Traceback (most recent call last):
  File "/home/me/train.py", line 9, in <module>
    model.fit(x, y, callbacks=[Stop()])
  File "/home/me/train.py", line 6, in on_train_batch_end
    if not np.isfinite(logs["loss"]): raise RuntimeError(f"loss is {logs['loss']} at batch {b}")
RuntimeError: loss is inf at batch 3
"""


def test_a_check_that_found_a_loss_of_inf_is_not_the_bug() -> None:
    answer = verdict(story(1, None, {"stderr": CHECKED}))
    assert answer.cause is None and answer.also[0].id != "unhandled-exception"
    slip = verdict(story(1, None, {"stderr": CHECKED.replace(b"loss is inf at batch 3", b"no scheduler is set")}))
    assert slip.cause is not None and slip.cause.id == "unhandled-exception" and slip.cause.confidence >= 0.9
