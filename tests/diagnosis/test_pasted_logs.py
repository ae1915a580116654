"""What people paste: a message without its exception, a few lines of a course, a dump of threads; and healthy logs,
of which nothing is to be said. All texts are made up in the style of their makers."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_logs import FRAME, cause, why

BARE = {
    "mat1 and mat2 shapes cannot be multiplied (8x12 and 128x64)": "shape-mismatch",
    "  (1) INVALID_ARGUMENT:  Cannot batch tensors with different shapes in component 0.\n\t [[{{node Next}}]]": "shape-mismatch",
    "E external/xla/local_client.cc:672] Execution of replica 0 failed: Resource exhausted: Out of memory while trying to allocate 99 bytes.": "gpu-memory-exhausted",
    "jax._src.traceback_util.UnfilteredStackTrace: TypeError: sub got incompatible shapes for broadcasting: (4, 3), (4, 4).": "shape-mismatch",
    "Tried to allocate 216.00 MiB (GPU 0; 8.00 GiB total capacity; 70.00 MiB already allocated; 24.00 MiB free; 86.00 MiB reserved in total by PyTorch)": "gpu-memory-held-by-others",
    "NCCL WARN Cuda failure 'out of memory'": "gpu-memory-exhausted",
    "terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily unavailable": "too-many-processes",
    "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: uncorrectable ECC error encountered": "gpu-hardware-fault",
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly": "worker-died",
    "cv2.error: OpenCV(4.9) resize.cpp:4051: error: (-215:Assertion failed) !ssize.empty() in function 'resize'": "missing-file",
    "RuntimeError: all tensors must be on devices[0]": "device-mismatch",
    "TypeError: Expected int32, got 1e-07 of type 'float' instead.": "dtype-mismatch",
    "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution": "gpu-memory-exhausted",
    "RuntimeError: PytorchStreamWriter failed writing file data/3: file write failed": "disk-full",
    "CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid": "gpu-architecture-unsupported",
    "Gloo connectFullMesh failed with [pair.cc:144] no error": "network-lost",
    "java.lang.OutOfMemoryError: Java heap space": "host-memory-exhausted",
}  # fmt: skip


@pytest.mark.parametrize(("words", "named"), BARE.items())
def test_a_message_is_named_also_where_it_stands_alone(words: str, named: str) -> None:
    assert cause(words + "\n") == named


def test_the_shells_killed_is_read_behind_a_bar_and_in_other_tongues() -> None:
    for text in (
        "165/296 [====>.....] - ETA: 5s - loss: 2.1Killed\n",
        "writing metrics\n已杀死\n",
        "epoch 3\nGetötet\n",
    ):
        answer = why(text)
        assert answer.cause is not None and answer.cause.id == "host-memory-exhausted" and answer.cause.confidence < 0.7


def test_a_bare_message_before_training_that_went_on_is_no_cause() -> None:
    told = "Unable to allocate 4.00 GiB for an array with shape (9, 9)\n"
    went_on = "".join(f"step {i} loss {1 / (i + 1):.4f}\n" for i in range(5))
    assert cause(told + "dtype float32\n") is not None
    assert cause("DNN library initialization: shapes (3,) and (4,) do not match\n" + went_on) is None


def grown(values: list[float], form: str) -> str:
    return "".join(form.format(i=i, value=value) + "\n" for i, value in enumerate(values))


def test_a_loss_scale_that_fell_to_nothing_is_half_precision_and_one_step_of_it_is_not() -> None:
    form = "overflow detected, setting loss scale to: {value}"
    assert cause(grown([2.0 ** (4 - 2 * i) for i in range(12)], form)) == "mixed-precision-overflow"
    assert cause(grown([32768.0, 16384.0, 8192.0], form)) is None


def test_a_gradient_norm_that_grows_without_bound_explodes_and_one_that_wobbles_does_not() -> None:
    form = "{{'loss': 11.2, 'grad_norm': {value}, 'learning_rate': 2e-05}}"
    assert cause(grown([3.7e6 * 1.5**i for i in range(12)], form)) == "exploding-gradients"
    assert cause(grown([1.0 + 0.3 * (i % 4) for i in range(12)], form)) is None


def test_a_loss_a_thousand_times_as_large_points_at_the_learning_rate() -> None:
    assert cause(grown([2.0 * 5.0**i for i in range(10)], "epoch {i} loss {value}")) == "learning-rate-too-high"
    assert cause(grown([2.0 + 0.1 * i for i in range(10)], "epoch {i} loss {value}")) is None


def test_most_of_a_step_spent_waiting_for_data_is_starvation() -> None:
    slow = "Epoch: [0][{i}/500] Time 15.261 ({value}) Data 15.193 (9.6) Loss 6.9 (6.9)"
    fine = "Epoch: [0][{i}/500] Time 0.261 ({value}) Data 0.003 (0.01) Loss 6.9 (6.9)"
    assert cause(grown([9.8] * 6, slow)) == "input-starvation"
    assert cause(grown([9.8] * 6, fine)) is None
    assert cause(grown([9.8] * 6, slow) + FRAME + "KeyError: 'lr'\n") == "unhandled-exception"


def test_memory_that_only_grows_as_the_script_prints_it_is_a_leak() -> None:
    form = "Memory usage after {i} prediction(s): {value} MiB"
    assert cause(grown([300.0 + 40 * i for i in range(12)], form)) == "host-memory-leak"
    assert cause(grown([min(300.0 + 200 * i, 900.0) for i in range(12)], form)) is None


def test_a_dump_in_which_every_thread_waits_for_a_lock_is_a_deadlock() -> None:
    waits = [f'  {i}    Thread 0x7fc6b59e6700 (LWP 5{i}) "" pthread_cond_wait () at wait.S:185' for i in range(1, 5)]
    busy = '  9    Thread 0x7fc6b59e6711 (LWP 59) "" mkl_blas_avx2_sgemm () from libmkl.so'
    assert cause("(gdb) info threads\n" + "\n".join(waits)) == "deadlock"
    assert cause("(gdb) info threads\n" + "\n".join([*waits, busy])) is None


def test_numpys_warning_explains_a_loss_that_is_nan() -> None:
    nan = "epoch 1 loss nan\nepoch 2 loss nan\n"
    assert cause("loss.py:9: RuntimeWarning: divide by zero encountered in log\n" + nan) == "invalid-math"
    assert cause(nan) is None


def test_a_question_for_the_gpu_and_its_answer_is_what_the_text_is_about() -> None:
    assert cause(">>> torch.cuda.is_available()\nFalse\n") == "gpu-not-used"
    assert cause(">>> torch.cuda.is_available()\nTrue\n") is None


WENT_ON = "".join(
    f"Epoch {i}/5\n100/100 [==============================] - 11s 110ms/step - loss: {2 / i:.4f} - accuracy: 0.{i}1\n"
    for i in range(1, 6)
)
HARMLESS = {
    "a library of the GPU is not there": "W tensorflow/dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: No such file or directory\nW gpu_device.cc:1850] Cannot dlopen some GPU libraries.\nSkipping registering GPU devices...",
    "no GPU": "E tensorflow/cuda_driver.cc:271] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "factories are registered twice": "E external/local_xla/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
    "numa node": "I cuda_gpu_executor.cc:995] successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node",
    "retracing": "WARNING:tensorflow:5 out of the last 5 calls to <function f> triggered tf.function retracing. (2) passing tensors with different shapes, (3) passing Python objects instead of tensors.",
    "an allocator that tries with less": "W bfc_allocator.cc:237] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.28GiB. The caller indicates that this is not a failure, but may mean that there could be performance gains",
    "the end of the data set": "I executor.cc:1197] (DEBUG INFO) Executor start aborting (this does not indicate an error and you can ignore this message): INVALID_ARGUMENT: You must feed a value for placeholder tensor 'x'\nW local_rendezvous.cc:404] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence",
    "deprecations": "UserWarning: The `lr` argument is deprecated, use `learning_rate` instead.\nFutureWarning: `np.bool` is a deprecated alias for the builtin `bool`.",
    "names with nan in them": "metrics: nan_ratio=0.0 isnan_count: 0 val_nan_loss_masked 0.231",
    "names of files": "saving to /data/killed_bill/error_log/segmentation_fault_examples.csv\nloading data/error_cases/oom_when_allocating.txt",
    "clipping": "Using gradient clipping (max_norm=1.0) to avoid exploding gradients and vanishing gradients",
    "a loss scale finding its level": "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
    "pip": "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.\ntensorflow 2.9 requires protobuf<3.20, but you have protobuf 4.21 which is incompatible.",
    "other backends": "INFO:absl:Unable to initialize backend 'rocm': NOT_FOUND: Could not find registered platform with name: \"rocm\".",
    "clocks at rest": "        SW Power Cap                : Not Active\n            HW Power Brake Slowdown : Not Active\n            HW Thermal Slowdown     : Not Active",
    "a download that was tried again": "Traceback (most recent call last):\n  File \"train.py\", line 3, in fetch\n    urlopen(x)\nurllib.error.URLError: <urlopen error timed out>\nretrying in 5 s\n" + "".join(f"step {i} loss {2 / (i + 1):.4f}\n" for i in range(80)),
}  # fmt: skip


@pytest.mark.parametrize("said", HARMLESS.values(), ids=HARMLESS.keys())
def test_a_run_that_trains_on_has_no_cause_whatever_it_complains_of(said: str) -> None:
    assert cause(f"{said}\n{WENT_ON}") is None
    assert cause(f"{said}\n{WENT_ON}Training finished. 0 errors.\n") is None


IN_PASSING = [
    "Seed is the same across all ranks: 42",
    "NCCL timeout: 1800s",
    "Setting NCCL_TIMEOUT=3600 NCCL_ASYNC_ERROR_HANDLING=1",
    "Waiting up to 300 s before timing out",
    "Registered signal handlers for SIGTERM and SIGHUP",
    "faulthandler enabled for SIGSEGV SIGABRT SIGBUS",
    "Address already in use, trying port 29501",
    "ulimit -n: 65536 (raise it to avoid Too many open files)",
    "GPU temperature limit 90 C",
    "Upload aborted, continuing without it",
    "Evaluating on ImageNet-C, corruption: gaussian_noise, severity 3",
    "Batch size 64 does not fit (CUDA out of memory), trying 32",
    "Killed 0 stale workers",
    "checkpoint not found, training from scratch",
    "Skipping corrupted image data/7.jpg",
    "Dropping 12 rows with NaN in the input data",
    "mixed precision: fp16, no overflow so far",
    "Resumed from checkpoint, missing keys: [] unexpected keys: []",
]


@pytest.mark.parametrize("said", IN_PASSING)
def test_what_a_healthy_run_says_in_passing_is_no_cause(said: str) -> None:
    assert cause(said + "\n") is None
    assert cause(f"{WENT_ON}{said}\n{WENT_ON}{WENT_ON}") is None


def test_a_lines_trouble_is_a_cause_until_the_run_is_seen_training_on() -> None:
    said = "NCCL WARN Connect to 10.0.0.2<5000> failed : Connection refused\n"
    assert cause(WENT_ON + said) == "network-lost"
    assert cause(said + WENT_ON + WENT_ON) is None


def test_how_a_library_was_called_is_the_scripts_own() -> None:
    assert cause("RuntimeError: Trying to backward through the graph a second time\n") == "unhandled-exception"
    assert cause("jax.errors.ConcretizationTypeError: Abstract tracer value encountered\n") == "unhandled-exception"


def test_a_debuggers_window_names_exception_and_message() -> None:
    text = "Exception has occurred: AttributeError\nCan't pickle local object 'main.<locals>.<lambda>'\n"
    assert cause(text) == "unpicklable-worker-object"


TRACED = {
    "One or more background workers are no longer alive. Exiting.": ("RuntimeError", "worker-died"),
    "Image Not Found /data/1.jpg": ("AssertionError", "missing-file"),
    "The detected CUDA version (11.8) mismatches the version that was used to compile PyTorch (12.1).": (
        "RuntimeError",
        "dependency-conflict",
    ),
}


@pytest.mark.parametrize(("words", "kind", "named"), [(w, *k) for w, k in TRACED.items()])
def test_what_a_toolkit_says_in_its_own_words_is_its_cause(words: str, kind: str, named: str) -> None:
    frame = 'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    run()\n'
    assert cause(f"{frame}{kind}: {words}\n") == named


def test_a_name_a_library_misses_inside_itself_is_a_matter_of_versions() -> None:
    head = 'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    fit()\n'
    inside = '  File "/env/lib/python3.10/site-packages/lib/core.py", line 3, in fit\n    numpy.frob()\n'
    said = "AttributeError: module 'numpy' has no attribute 'frob'\n"
    assert cause(head + inside + said) == "api-incompatible"


def test_a_card_for_the_network_that_is_not_found_is_the_network_and_a_plugin_that_is_not_is_nothing() -> None:
    assert cause("node:1:2 [0] NCCL WARN Bootstrap : no socket interface found\n") == "network-lost"
    assert cause("node:1:2 [0] NCCL INFO NET/IB : No device found.\n") is None
