"""Figures and rows along the way: memory, heat, dead workers, a scale, a CHECK; each with its healthy twin.
All texts are made up in the style of their makers."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_logs import cause, why

TOLD = {
    # glog's CHECK says what it compared
    "F0101 10:00:00.0 7 frob_layer.cpp:20] Check failed: label_value < num_labels_ (9 vs. 5)": "label-out-of-range",
    "F0101 10:00:00.0 7 frob_layer.cpp:20] Check failed: bottom[0]->channels() == channels_ (3 vs. 1)": "shape-mismatch",
    "F0101 10:00:00.0 7 io.cpp:54] Check failed: fd != -1 (-1 vs. -1) File not found: net.prototxt": "missing-file",
    # versions
    "CUDA backend failed to initialize: Found cuFROB version 100, but JAX was built against version 200, which is newer.": "native-library-conflict",
    "AttributeError: 'dict' object has no attribute 'iteritems'": "api-incompatible",
    "NameError: name 'xrange' is not defined": "api-incompatible",
    "ModuleNotFoundError: No module named 'cPickle'": "api-incompatible",
    "Process finished with exit code -1073740791 (0xC0000409)": "native-crash",
    # files
    "OSError: Unable to open file (Unable to find a valid file signature)": "corrupt-file",
    "OSError: Unable to open file (unable to open file: name = 'w.h5', errno = 2, error message = 'No such file or directory')": "missing-file",
    # types that JAX compares
    "TypeError: the input carry a has type float32[] but the output carry has type int32[], so the dtypes do not match.": "dtype-mismatch",
    # the machine
    "Reason=Node unexpectedly rebooted [slurm@2026-01-01T00:00:00]": "machine-went-down",
    "kernel: CPU 3 THERMAL EVENT TSC 9": "cpu-overheating",
    # ranks
    "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress": "collective-timeout",
    "Process group watchdog thread terminated with exception: CUDA error: unspecified launch failure": "gpu-illegal-access",
}  # fmt: skip

NOT_TOLD = [
    "[PG 0 Rank 0] ProcessGroupNCCL heartbeat monitor thread started",
    "Epoch 3: loss 1.20, slowest rank 2 (1.02 s), fastest rank 0 (1.00 s)",
    "Provider: Kernel-Power, event 506: entering standby",
    "unexpected shutdown of the pool was handled",
    "Check passed: 3 labels",
]


@pytest.mark.parametrize(("words", "named"), TOLD.items())
def test_one_line_tells(words: str, named: str) -> None:
    assert cause(words + "\n") == named


@pytest.mark.parametrize("words", NOT_TOLD)
def test_a_line_that_only_sounds_like_it_does_not(words: str) -> None:
    assert cause(words + "\n") is None


def test_a_module_of_ones_own_is_no_old_name() -> None:
    assert cause("ModuleNotFoundError: No module named 'Queueing.core'\n") != "api-incompatible"


def _printed(*values: float, words: str = "Memory usage") -> str:
    return "".join(f"step {n} loss 1.0 {words}: {value} MB\n" for n, value in enumerate(values))


def test_memory_that_grows_as_fast_at_the_end_as_at_the_beginning_leaks() -> None:
    assert cause(_printed(*(1000 + 20 * n for n in range(16)))) == "host-memory-leak"


def test_memory_that_settles_does_not_leak() -> None:
    assert cause(_printed(800, 1000, 1150, 1200, *(1210 + n // 4 for n in range(12)))) is None


def test_a_cards_memory_that_grows_is_the_cards() -> None:
    leaking = "".join(f"GPU memory: current: {0.2 + 0.05 * n:.2f}, peak: 3.1\n" for n in range(14))
    assert cause(leaking) == "gpu-memory-leak"
    assert cause("GPU memory: current: 0.20, peak: 3.1\n" * 14) is None


def test_a_loss_below_zero_beside_an_accuracy_has_labels_it_cannot_have() -> None:
    told = "".join(f"Epoch {n}/9 - loss: -{10**n}.5 - accuracy: 0.3333\n" for n in range(1, 5))
    assert cause(told) == "output-loss-mismatch"
    assert cause(told.replace("accuracy: 0.3333", "bits: 0.3333")) is None  # a likelihood may well be


def test_workers_that_are_dead_and_not_collected() -> None:
    alive = "me 1 24.8 4.4 9150 2919 ? Ssl 14:25 13:01 python -m train\n"
    dead = "me {} 51.7 0.0 0 0 ? Z 14:27 26:20 [python] <defunct>\n"
    assert cause(alive + dead.format(58) + dead.format(59)) == "worker-died"
    assert cause(alive + dead.format(58)) is None


@pytest.mark.parametrize(("degrees", "named"), [(92, "gpu-overheating"), (61, None)])
def test_a_card_as_hot_as_it_may_be(degrees: int, named: str | None) -> None:
    assert (
        cause(f"    GPU Current Temp : {degrees} C\n    GPU Shutdown Temp : 96 C\n    GPU Slowdown Temp : 93 C\n")
        == named
    )


def test_one_cards_heat_is_not_held_against_anothers_limit() -> None:
    assert cause("    GPU Slowdown Temp : 60 C\n    GPU Current Temp : 70 C\n    GPU Slowdown Temp : 90 C\n") is None


@pytest.mark.parametrize(("power", "named"), [(-0.8, "mixed-precision-overflow"), (20.3, None)])
def test_a_scale_kept_as_a_power_of_two(power: float, named: str | None) -> None:
    assert (
        cause(f"Found NaN, decreased lg_loss_scale to {power}\n| lg_loss_scale | {power} |\n| step | 200 |\n") == named
    )


def test_twice_as_many_workers_as_fit_slow_a_run_that_shows_nothing_else() -> None:
    warned = "UserWarning: This DataLoader will create {} worker processes in total. Our suggested max number of worker in current system is 2, which is smaller than what this DataLoader is going to create.\n"
    assert cause(warned.format(16)) == "cpu-oversubscribed"
    assert cause(warned.format(3)) is None
    assert cause(warned.format(16) + "epoch 1 loss: 0.3\n") is None


def test_what_is_only_likely_is_not_said_for_sure() -> None:
    for words in (
        "    GPU Current Temp : 92 C\n    GPU Slowdown Temp : 93 C\n",
        _printed(*(1000 + 90 * n for n in range(16))),
    ):
        answer = why(words)
        assert answer.cause is not None and answer.cause.confidence < 0.8


def test_a_notebook_shows_a_kill_for_memory_as_if_a_key_was_pressed() -> None:
    large = "tcmalloc: large alloc 11498029056 bytes == 0x7f52 @  0x7f56\n"
    assert cause("Loading data: 100%\n" + large + "^C\n") == "host-memory-exhausted"
    assert cause("Loading data: 100%\n^C\n") == "interrupted"
    assert cause(large + "epoch 1 loss: 0.5\nepoch 2 loss: 0.4\n") is None


def test_a_warning_of_numpy_counts_where_it_is_all_that_was_shown() -> None:
    warned = "box.py:29: RuntimeWarning: invalid value encountered in log\n  t = np.log(a / b)\n"
    answer = why(warned)
    assert answer.cause is not None and answer.cause.id == "invalid-math" and answer.cause.confidence < 0.6
    assert cause(warned + "".join(f"epoch {n} loss: 0.{9 - n}\n" for n in range(5))) is None


def test_a_list_of_devices_without_a_gpu() -> None:
    asked = ">>> [d.name for d in device_lib.list_local_devices()]\n"
    assert cause(asked + "['/cpu:0']\n") == "gpu-not-used"
    assert cause(asked + "['/cpu:0', '/gpu:0']\n") is None


def test_hosts_that_were_not_all_started() -> None:
    told = "UserWarning: TPU backend initialization is taking more than 60.0 seconds. Did you run your code on all TPU hosts?\n"
    assert cause(told) == "collective-timeout"
    assert cause(told + "".join(f"step {n} loss: 0.{99 - n}\n" for n in range(12))) is None


FINALIZER = (
    'Traceback (most recent call last):\n  File "/opt/env/lib/python3.10/site-packages/torch/utils/data/dataloader.py", line 1466, in __del__\n'
    "    self._shutdown_workers()\n"
    '  File "/opt/env/lib/python3.10/multiprocessing/process.py", line 160, in is_alive\n'
    "    assert self._parent_pid == os.getpid(), 'can only test a child process'\n"
    "AssertionError: can only test a child process\n"
)
IGNORED = "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f62eb6ed630>\n"


def test_what_a_finalizer_raised_ended_nothing() -> None:
    assert cause(IGNORED + FINALIZER) is None
    assert cause("AssertionError: can only test a child process\n" + IGNORED + FINALIZER) is None
    assert cause(IGNORED + "......\nAssertionError: can only test a child process\n") is None
    assert cause(FINALIZER) == "unhandled-exception"


def test_an_error_below_what_a_finalizer_raised_is_still_named() -> None:
    own = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 9, in <module>\n    rate = options["lr"]\n'
    assert cause(IGNORED + FINALIZER + own + "KeyError: 'lr'\n") == "unhandled-exception"
    assert cause(IGNORED + FINALIZER.replace("AssertionError: can only test a child process", "KeyboardInterrupt")) == (
        "interrupted"
    )


def test_keras_learns_the_length_of_an_epoch_at_its_end() -> None:
    ended = "UserWarning: Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at least `steps_per_epoch * epochs` batches.\n"
    assert (
        cause("    919/Unknown 1s 2ms/step - loss: 1.0546\n" + ended + "927/927 2s 2ms/step - loss: 1.0546\n") is None
    )
    assert cause("    919/2000 1s 2ms/step - loss: 1.0546\n" + ended) == "data-exhausted"


def test_a_text_cut_in_the_middle_of_a_frame_is_read_up_to_there() -> None:
    frames = (
        '  File "/home/ada/model.py", line 122, in forward\n    h = self.first(x)\n'
        '  File "/opt/env/lib/python3.8/site-packages/torch/nn/modules/linear.py", line 93, in forward\n    return F.linear(input, self.weight, self.bias)\n'
    )
    assert cause(frames + '  File "/opt/env/lib/pyth') == "shape-mismatch"


def test_an_exception_is_read_behind_odd_spaces_and_marks() -> None:
    assert cause("    new = empty(newshape, arr.dtype)\n      MemoryError`\n") == "host-memory-exhausted"
    said = "expected tensor for argument #1 'input' to have the same device as tensor for argument #2 'weight"
    assert cause(f"when I run main.py\nit has RuntimeError:  :{said}\n") == "device-mismatch"
    assert cause("lmdb.Error: data/train: No such file or directory\n") == "missing-file"
