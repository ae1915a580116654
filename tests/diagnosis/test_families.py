"""Families of messages: siblings of one library's own words, each with what a healthy run says beside it.
All texts are made up in the style of their makers."""

from __future__ import annotations

import pytest

from tests.diagnosis.test_logs import cause, why
from tests.diagnosis.test_pasted_logs import WENT_ON

FAMILIES = {
    # NCCL, where there is no way to the other ranks
    "h:1:2 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.1.0.2<4000> failed : Software caused connection abort": "network-lost",
    "h:1:2 [0] NCCL WARN NET/IB : mlx5_0:1 async fatal event: local work queue catastrophic error": "network-lost",
    "h:1:2 [0] NCCL WARN Mismatched NCCL version detected : rank 0 version 21805 rank 1 version 22005": "dependency-conflict",
    # JAX's coordination service and XLA's meeting points
    "E xla/coordination_service.cc:9] /job:jax_worker/task:1 has been set to ERROR in coordination service: UNAVAILABLE: Task heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly.": "collective-timeout",
    "E xla/rendezvous.cc:38] This thread has been waiting for `initialize clique for rank 6` for 10 seconds and may be stuck.": "collective-timeout",
    # schedulers and the kernel
    "srun: error: gpu001: task 0: Out Of Memory": "container-memory-limit",
    "kernel: Killed process 7748 (python) total-vm:12907828kB, anon-rss:11500204kB, file-rss:0kB": "host-memory-exhausted",
    "2026-05-04T18:05:44 container oom 29d72966e0beb17d9b0b (name=notebook)": "container-memory-limit",
    "Warning  Evicted  pod/a  Pod ephemeral local storage usage exceeds the total limit of containers 1073741824.": "disk-full",
    "salloc: error: Job allocation 99 has been revoked": "terminated",
    "kernel: Lustre: t-OST0035: Connection to t-OST0035 (at 10.1.1.1@o2ib2) was lost; in progress operations using this service will wait": "io-stall",
    "OpenBLAS blas_thread_init: pthread_create: Resource temporarily unavailable": "too-many-processes",
    "File.lua:210: write error: wrote 100 blocks instead of 200 at THDiskFile.c:340": "disk-full",
    # accelerators
    "Queue 0x7f aborting with error : HSA_STATUS_ERROR_INVALID_ISA: The instruction set architecture is invalid.": "gpu-architecture-unsupported",
    "Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process with pid 17. Not attempting to load libtpu.so": "gpu-memory-held-by-others",
    "E cuda_driver.cc:806] failed to allocate 7.92G (8504868864 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY": "gpu-memory-held-by-others",
    "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 3293 vs 3187": "disk-full",
    "CUDA error: all CUDA-capable devices are busy or unavailable": "gpu-memory-held-by-others",
    "OSError: libnvidia-ml.so.1: cannot open shared object file: No such file or directory": "cuda-library-missing",
    "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21G of 7G hbm.": "gpu-memory-exhausted",
    # workers
    "RuntimeError: One of the subprocesses has abruptly died during map operation.": "worker-died",
    # data
    "TypeError: true_fun and false_fun output must have identical types, got DIFFERENT ShapedArray(bfloat16[5]) vs. ShapedArray(float32[5])": "dtype-mismatch",
    "TypeError: true_fun and false_fun output must have identical types, got DIFFERENT ShapedArray(float32[5]) vs. ShapedArray(float32[6])": "shape-mismatch",
    "RuntimeError: 'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor": "device-mismatch",
    "AssertionError: class id must be less than num_classes": "label-out-of-range",
    "Wrong annotation: class_id = 3. But class_id should be [from 0 to 2]": "label-out-of-range",
    "KeyError: 'pytorch-lightning_version'": "checkpoint-mismatch",
    "Not a JPEG file: starts with 0x89 0x50": "corrupt-file",
    # libraries of different times
    "AttributeError: 'FrobTrainer' object has no attribute 'accelerator'": "api-incompatible",
    "'FrobTrainer' object has no attribute 'accelerator'": "api-incompatible",
    "E cuda_dnn.cc:286] Loaded cudnn library: 4007 but source was compiled against 4004.": "native-library-conflict",
    "ext.h:36:10: fatal error: EGL/egl.h: No such file or directory": "dependency-conflict",
    "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded.": "api-incompatible",
    "InvalidArgumentError: Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: b'No files matched pattern: a/*.rec'": "missing-file",
    "OSError: bert-bse is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'": "missing-file",
    "LocalEntryNotFoundError: we cannot find the files in the local cache. Please make sure your Internet connection is on.": "network-lost",
    "ImportError: Could not import PIL.Image. The use of `array_to_img` requires PIL.": "dependency-conflict",
    "ImportError: Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.": "dependency-conflict",
    "ImportError: cannot import name 'Random' from 'random' (/home/me/job/random.py)": "unhandled-exception",
    "ImportError: cannot import name 'AdamW' from 'transformers' (/v/lib/python3.11/site-packages/transformers/__init__.py)": "api-incompatible",
    "[ep 3] saving failed: RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 2003840 vs 2003732": "disk-full",
    "OSError: /usr/lib/libgomp.so.1: cannot allocate memory in static TLS block": "native-library-conflict",
}  # fmt: skip


@pytest.mark.parametrize(("words", "named"), FAMILIES.items())
def test_the_siblings_of_a_message_are_told_as_it_is(words: str, named: str) -> None:
    assert cause(words + "\n") == named


GENERAL = {
    "ValueError: Frob layers need inputs of rank 3, received an input of rank 4 with shape (2, 3, 4, 5), which is invalid": "shape-mismatch",
    "ValueError: `filters.shape` must have 5 dimensions. Received: filters.shape=(3, 3)": "shape-mismatch",
    "TypeError: frob: unsupported dtype int4": "dtype-mismatch",
    "ValueError: Frobs require uniform dtype but got float16 and float32": "dtype-mismatch",
    "ValueError: Device should be MPS, got cuda:0 instead.": "device-mismatch",
    "ValueError: Tensor frob/w is not found in ./out/model checkpoint": "checkpoint-mismatch",
    "RuntimeError: Frobnicating requires PyTorch 2.2 or higher. Current version is 1.9.": "dependency-conflict",
    "ValueError: the generator must yield at least one batch. Received an empty generator.": "data-exhausted",
    "RuntimeError: Target values should be in [0, 9], but values in range [0, 10] were found.": "label-out-of-range",
    "ValueError: Cholesky decomposition failed. The input might not be a valid positive definite matrix.": "invalid-math",
}  # fmt: skip


@pytest.mark.parametrize(("words", "named"), GENERAL.items())
def test_a_message_nobody_has_seen_is_read_by_what_it_speaks_of_and_less_surely(words: str, named: str) -> None:
    answer = why(words + "\n")
    assert answer.cause is not None and answer.cause.id == named and answer.cause.confidence <= 0.85


BESIDE = [
    "coordination service agent started",
    "Input shape: (32, 3, 224, 224), expected channels: 3",
    "Expected input shape (None, 28, 28, 1); got a data set of 60000 samples",
    "node gpu-12: task 3: running, memory 12 GB",
    "loading state dict: 3 missing keys, 0 unexpected keys (expected for a new head)",
    "Requires Python 3.8 or newer",
    "short writeup of the results saved to report.md",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: (null)",
    "dtype: float32, shape: (128, 10)",
    "All 8 worker processes exited normally",
    "Restored checkpoint from step 1000; missing: none",
    "Found 0 corrupted files, 12000 images",
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
]


@pytest.mark.parametrize("said", BESIDE)
def test_the_same_words_of_a_healthy_run_are_no_cause(said: str) -> None:
    assert cause(said + "\n") is None
    assert cause(f"{WENT_ON}{said}\n{WENT_ON}{WENT_ON}") is None


def test_what_is_kept_beside_what_is_allocated_is_the_jobs_own() -> None:
    old = "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 7.93 GiB total capacity; {held} already allocated; 340.00 MiB free; {kept} cached)\n"
    assert cause(old.format(held="6.19 GiB", kept="551.04 MiB")) == "gpu-memory-exhausted"
    assert cause(old.format(held="0.90 GiB", kept="100.00 MiB")) == "gpu-memory-held-by-others"


def test_a_small_card_is_not_held_by_cudas_own_context() -> None:
    small = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 2.00 GiB total capacity; 1.25 GiB already allocated; 3.55 MiB free; 1.27 GiB reserved in total by PyTorch)\n"
    assert cause(small) == "gpu-memory-exhausted"


def test_steps_skipped_down_to_the_end_of_a_cutting_are_half_precision_and_those_before_training_are_not() -> None:
    skipped = "".join(
        f"[Rank 0] Overflow detected. Skipping step. Attempted loss scale: {2**i}, reducing to {2 ** (i - 1)}\n"
        for i in range(8, 2, -1)
    )
    assert cause(skipped) == "mixed-precision-overflow"
    assert cause(skipped + WENT_ON) is None


def test_a_check_that_found_the_symptom_does_not_say_why() -> None:
    frame = 'Traceback (most recent call last):\n  File "train.py", line 9, in fit\n    raise RuntimeError("loss became NaN")\n'
    assert cause(frame + "RuntimeError: loss became NaN\n") is None
    assert cause(frame + "ValueError: Loss became NaN at step 120, aborting\n") is None
    assert cause(frame + "FloatingPointError: non-finite loss\n") is None
    assert cause(frame.replace("loss became NaN", "no optimizer") + "RuntimeError: no optimizer\n") is not None


def test_what_the_kernel_says_below_an_exception_comes_before_it() -> None:
    died = "RuntimeError: DataLoader worker (pid 629) is killed by signal: Killed.\n"
    assert cause(died) == "worker-died"
    assert (
        cause(died + "Memory cgroup out of memory: Killed process 629 (a) anon-rss:653kB\n") == "container-memory-limit"
    )


def test_a_frame_of_ipython_is_read_also_where_its_line_has_four_digits() -> None:
    text = (
        "lib/python3.9/site-packages/keras/engine/topology.py in from_config(cls, config)\n"
        "   1466 \n-> 1467         mask = config.pop('frob_mask')\n   1468 \n\nKeyError: 'frob_mask'\n"
    )
    assert cause(text) == "api-incompatible"


def test_a_traceback_cut_before_its_last_line_is_read_by_the_line_that_raised_it() -> None:
    text = (
        "/env/lib/python3.9/site-packages/torch/nn/utils/rnn.py in pack(x)\n"
        '     78     if x.dim() != 3:\n---> 79         raise ValueError("Expected 3D input, got 2D input")\n     80     return x\n'
    )
    assert cause(text) == "shape-mismatch"


def test_what_a_worker_cannot_unpack_after_a_spawn_was_not_made_to_be_sent() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/usr/lib/python3.11/multiprocessing/spawn.py", line 132, in _main\n'
        "    self = reduction.pickle.load(from_parent)\nAttributeError: 'Frob' object has no attribute 'getter'\n"
    )
    assert cause(text) == "unpicklable-worker-object"
