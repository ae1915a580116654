"""A log from elsewhere: the right cause, or an honest "cannot tell". All texts are made up in the style of their makers."""

from __future__ import annotations

import io

import pytest

from holdfast.diagnosis.reading.scan import excerpt
from holdfast.diagnosis.verdict import diagnose_log
from holdfast.vocabulary import Diagnosis

FRAME = 'Traceback (most recent call last):\n  File "/home/ada/train.py", line 51, in step\n    out = model(batch)\n'


def why(text: str | bytes) -> Diagnosis:
    return diagnose_log(excerpt(io.BytesIO(text.encode() if isinstance(text, str) else text)))


def cause(text: str | bytes) -> str | None:
    answer = why(text)
    return answer.cause.id if answer.cause else None


RAISED = {
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)": "shape-mismatch",
    "ValueError: Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape to have value 784, but received input with shape (None, 28, 28)": "shape-mismatch",
    "TypeError: dot_general requires contracting dimensions to have the same shape, got (3,) and (4,).": "shape-mismatch",
    "ValueError: operands could not be broadcast together with shapes (3,4) (5,)": "shape-mismatch",
    "RuntimeError: expected scalar type Double but found Float": "dtype-mismatch",
    "RuntimeError: \"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'": "dtype-mismatch",
    "ValueError: Failed to convert a NumPy array to a Tensor (Unsupported object type float).": "dtype-mismatch",
    "IndexError: Target 12 is out of bounds.": "label-out-of-range",
    "tensorflow.python.framework.errors_impl.InvalidArgumentError: Received a label value of 10 which is outside the valid range of [0, 10).": "label-out-of-range",
    "IndexError: index out of range in self": "index-out-of-range",
    "InvalidArgumentError: indices[3,7] = 30522 is not in [0, 30000)": "index-out-of-range",
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 8]) from checkpoint, the shape in current model is torch.Size([3, 8]).": "checkpoint-mismatch",
    "ValueError: Layer 'dense' expected 2 variables, but received 0 variables during loading.": "checkpoint-mismatch",
    "PIL.UnidentifiedImageError: cannot identify image file 'cat/7.jpg'": "corrupt-file",
    "_pickle.UnpicklingError: invalid load key, 'v'.": "corrupt-file",
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory": "corrupt-file",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'": "missing-file",
    "OSError: Unable to open file (unable to open file: name = 'w.h5', errno = 2, error message = 'No such file or directory')": "missing-file",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; 13.90 GiB already allocated; 1.10 GiB free; 14.20 GiB reserved in total by PyTorch)": "gpu-memory-exhausted",
    # in a container: this process under the host's number
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 14.75 GiB of which 13.06 MiB is free. Process 3485 has 14.73 GiB memory in use. Of the allocated memory 14.29 GiB is allocated by PyTorch, and 315.10 MiB is reserved by PyTorch but unallocated.": "gpu-memory-exhausted",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.60 GiB of which 0.40 GiB is free. Process 7 has 17.60 GiB memory in use. Process 9 has 5.60 GiB memory in use. Of the allocated memory 5.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.": "gpu-memory-held-by-others",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.60 GiB of which 0.40 GiB is free. Process 4242 has 18.00 GiB memory in use. Including non-PyTorch memory, this process has 5.20 GiB memory in use. Of the allocated memory 4.80 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.": "gpu-memory-held-by-others",
    "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 15.78 GiB total capacity; 7.00 GiB already allocated; 1.00 GiB free; 14.30 GiB reserved in total by PyTorch)": "gpu-memory-fragmented",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.": "gpu-memory-exhausted",
    "ResourceExhaustedError: OOM when allocating tensor with shape[256,512,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc": "gpu-memory-exhausted",
    "ResourceExhaustedError: OOM when allocating tensor with shape[9999,9999] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu": "host-memory-exhausted",
    "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.": "shared-memory-exhausted",
    "RuntimeError: received 0 items of ancdata": "too-many-open-files",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": "gpu-architecture-unsupported",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 10010).": "gpu-driver-too-old",
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory": "cuda-library-missing",
    "RuntimeError: CUDA error: an illegal memory access was encountered": "gpu-illegal-access",
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": "gpu-hardware-fault",
    "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method": "cuda-in-forked-worker",
    "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'": "unpicklable-worker-object",
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!": "device-mismatch",
    "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same": "device-mismatch",
    "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same": "dtype-mismatch",
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [8, 4]] is at version 2": "autograd-inplace",
    "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 64])": "batch-too-small-for-normalization",
    "ValueError: Input X contains NaN.": "bad-input-values",
    "RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.": "invalid-math",
    "RuntimeError: all elements of input should be between 0 and 1": "output-loss-mismatch",
    "AttributeError: module 'numpy' has no attribute 'bool'.": "api-incompatible",
    "ImportError: cannot import name 'AdamW' from 'transformers' (/opt/env/lib/python3.11/site-packages/transformers/__init__.py)": "api-incompatible",
    "TypeError: Descriptors cannot be created directly.": "dependency-conflict",
    "ImportError: /opt/env/lib/ext.so: undefined symbol: _ZN3c105ErrorC2E": "native-library-conflict",
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use": "port-in-use",
    "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 62 params, while rank 1 has inconsistent 60 params.": "rank-mismatch",
    "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete": "collective-timeout",
    "tensorflow.python.framework.errors_impl.OutOfRangeError: End of sequence": "data-exhausted",
    "KeyError: 'lr'": "unhandled-exception",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 812 got signal: 15": "terminated",
    "KeyboardInterrupt": "interrupted",
}  # fmt: skip

SAID = {
    "[77.1] Out of memory: Killed process 4242 (python) total-vm:99kB, anon-rss:88kB": "host-memory-exhausted",
    "Memory cgroup out of memory: Killed process 4242 (python) total-vm:99kB": "container-memory-limit",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have been OOM Killed.": "container-memory-limit",
    "    Reason:       OOMKilled\n    Exit Code:    137": "container-memory-limit",
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-31T12:00:00 DUE TO TIME LIMIT ***": "terminated",
    "OMP: Error #15: Initializing libiomp5.so, but found libomp.dylib already initialized.": "native-library-conflict",
    "Illegal instruction (core dumped)": "illegal-instruction",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, GPU has fallen off the bus.": "gpu-lost",
    "NVRM: Xid (PCI:0000:3b:00): 48, pid=4242, An uncorrectable double bit error": "gpu-hardware-fault",
    "INFO: task python:4242 blocked for more than 120 seconds.": "io-stall",
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.": "label-out-of-range",
    "WARNING:tensorflow:Your input ran out of data; interrupting training.": "data-exhausted",
    "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc": "host-memory-exhausted",
    "OpenBLAS blas_thread_init: pthread_create failed for thread 12 of 64: Resource temporarily unavailable": "too-many-processes",
    "kernel: Kernel panic - not syncing: Fatal exception": "machine-went-down",
    "free(): invalid pointer\nAborted (core dumped)": "native-crash",
    ">>> import torch\n>>> import otherlib\nSegmentation fault (core dumped)": "native-library-conflict",
}  # fmt: skip


@pytest.mark.parametrize(("words", "named"), RAISED.items())
def test_an_exception_is_named_with_its_traceback_and_without(words: str, named: str) -> None:
    answer = why(FRAME + words + "\n")
    assert answer.cause is not None and answer.cause.id == named, answer
    assert any("/home/ada/train.py:51" in item.text for item in answer.cause.evidence)
    if named not in ("unhandled-exception", "interrupted"):
        assert cause(f"epoch 3\n{words}\n") == named


@pytest.mark.parametrize(("words", "named"), SAID.items())
def test_what_kernel_scheduler_and_runtime_say_is_named(words: str, named: str) -> None:
    assert cause(f"epoch 3 step 100 loss 0.31\n{words}\n") == named


PREFIXES = [
    "[rank3]: ", "[rank0]:", "[1,0]<stderr>:", "worker-0  | ", "2026-01-31T12:00:00.123456789Z stderr F ", "2026-01-31 12:00:00,123 - ERROR - ",
    "(RayTrainWorker pid=77, ip=10.0.0.1) ", "Jan 31 12:00:00 node7 train[77]: ", "[pod/job-0/main] ", "\x1b[36m(main pid=9)\x1b[0m ",
    "E0131 12:00:00.123000 140 torch/distributed/run.py:882] ", "[default0]:[rank0]: ", "  0: ", "[2026-01-31 12:00:00,123] [INFO] ",
]  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_of_launchers_and_clocks_do_not_hide_a_traceback(prefix: str) -> None:
    text = FRAME + "RuntimeError: expected scalar type Double but found Float"
    answer = why("\n".join(prefix + line for line in text.split("\n")))
    assert answer.cause is not None and answer.cause.id == "dtype-mismatch"
    assert any("/home/ada/train.py:51" in item.text for item in answer.cause.evidence)


def test_colours_bars_nuls_and_broken_utf8_do_not_hide_it_either() -> None:
    text = (FRAME + "RuntimeError: expected scalar type Double but found Float\n").encode()
    dirty = b"10/100\r20/100 \xe2\x96\r\x00\x00\xff\xfe" + text.replace(b"Runtime", b"\x1b[1;31mRuntime").replace(
        b"\n", b"\r\n"
    )
    assert cause(dirty) == "dtype-mismatch"


def test_interleaved_ranks_are_read_apart_and_the_first_to_fail_decides() -> None:
    oom = (FRAME + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB").split("\n")
    echo = (
        FRAME
        + "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\nLast error: socketProgress: Connection closed by remote peer"
    ).split("\n")
    lines = [
        line
        for pair in zip([f"[rank1]: {line}" for line in echo], [f"[rank2]: {line}" for line in [*oom, ""]], strict=True)
        for line in pair
    ]
    answer = why("\n".join(lines))
    assert answer.cause is not None and answer.cause.id == "gpu-memory-exhausted"
    assert "[rank2]" in answer.cause.evidence[0].text


def test_a_timeout_of_the_others_is_an_echo_of_the_rank_that_broke() -> None:
    broke = FRAME + "IndexError: Target 12 is out of bounds."
    waited = "[E ProcessGroupNCCL.cpp:474] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"
    assert cause(f"{broke}\n{waited}\n") == "label-out-of-range"
    assert cause(f"step 4\n{waited}\n") == "collective-timeout"


def test_torchruns_report_is_not_the_cause() -> None:
    report = (
        "E0131 12:00:00.000000 7 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 9)\n"
        'Traceback (most recent call last):\n  File "/opt/env/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED\n----\n"
        "Root Cause (first observed failure):\n[0]:\n  exitcode  : 1 (pid: 9)\n"
    )
    assert cause(FRAME + "ValueError: Input X contains NaN.\n" + report) == "bad-input-values"
    assert cause(report) is None


def test_the_first_of_a_chain_is_the_reason() -> None:
    link = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    first = FRAME + "OSError: [Errno 28] No space left on device: 'model.pt'"
    assert cause(first + link + FRAME + "RuntimeError: could not write the summary\n") == "disk-full"


def test_a_workers_own_traceback_is_read_from_within_the_trainers() -> None:
    text = (
        'Traceback (most recent call last):\n  File "train.py", line 30, in <module>\n    for batch in loader:\n'
        "PIL.UnidentifiedImageError: Caught UnidentifiedImageError in DataLoader worker process 0.\n"
        'Original Traceback (most recent call last):\n  File "/home/ada/data.py", line 9, in __getitem__\n    Image.open(path)\n'
        "PIL.UnidentifiedImageError: cannot identify image file 'a.jpg'\n"
    )
    remote = (
        'multiprocessing.pool.RemoteTraceback: \n"""\nTraceback (most recent call last):\n  File "/home/ada/prep.py", line 4, in one\n'
        '    return np.load(path)\nValueError: cannot reshape array of size 7 into shape (2,2)\n"""\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        + FRAME
        + "ValueError: cannot reshape array of size 7 into shape (2,2)\n"
    )
    assert cause(text) == "corrupt-file"
    assert cause(remote) == "shape-mismatch"


def test_ipythons_tracebacks_are_read() -> None:
    text = (
        "-"
        * 75
        + "\nValueError                                Traceback (most recent call last)\n<ipython-input-5-ab> in <module>\n"
        "      1 x = 3\n----> 2 model.fit(x, y)\n\n/usr/lib/python3/dist-packages/keras/engine/training.py in fit(self, x)\n"
        "     10     pass\n---> 11     raise e\n\nValueError: Data cardinality is ambiguous:\n  x sizes: 10\n  y sizes: 9\n"
    )
    answer = why(text)
    assert answer.cause is not None and answer.cause.id == "shape-mismatch"
    assert any("<ipython-input-5-ab>:2" in item.text for item in answer.cause.evidence)


def test_a_cut_traceback_still_tells_by_its_last_line() -> None:
    text = '    x = table[i]\n  File "/home/ada/train.py", line 3, in get\n    torch.gather(a, 1, i)\nRuntimeError: index 9 is out of bounds for dimension 1 with size 9\n'
    assert cause(text) == "index-out-of-range"


@pytest.mark.parametrize(
    "text",
    [
        "", "\n\n", "epoch 1 loss 0.3\nepoch 2 loss 0.2\n", "training finished, saved model.pt\n",
        "Epoch 1/2\n100/100 - 1s - loss: 0.2 - mean_absolute_error: 0.1\nEpoch 2/2\n100/100 - 1s - loss: 0.1\n",
        "2026-01-31 12:00:00.1: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized to use available CPU instructions\n",
        "W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence\nepoch 2\n",
        "UserWarning: this will be removed in version 3\nepoch 1 done\n",
        "loss: 0.5\nloss: 0.4\nloss: 0.45\nloss: 0.41\nloss: nan\nloss: nan\n",
        "RuntimeError: CUDA error: device-side assert triggered\n",
        "the process exited with code 1\n",
    ],
)  # fmt: skip
def test_it_abstains_where_the_text_does_not_decide(text: str) -> None:
    assert cause(text) is None


@pytest.mark.parametrize("last", ["Training finished.", "training completed successfully", "The run is done!"])
def test_an_error_before_a_run_that_says_it_finished_is_no_cause(last: str) -> None:
    text = FRAME + "ValueError: Input X contains NaN.\nskipped that file\nepoch 1 loss 0.4\n"
    assert cause(text + last + "\n") is None
    assert cause(last + "\n" + text) == "bad-input-values"


@pytest.mark.parametrize("last", ["done", "loading the data: done", "training was not finished", "finished epoch 1"])
def test_words_that_do_not_say_that_the_run_finished_leave_it_one(last: str) -> None:
    assert cause(FRAME + "ValueError: Input X contains NaN.\n" + last + "\n") == "bad-input-values"


def test_an_error_that_was_handled_long_before_the_end_is_no_cause() -> None:
    went_on = "".join(f"step {i} loss {1 / (i + 1):.4f} on batch {'abcdefghij'[i % 10]}\n" for i in range(200))
    assert cause(FRAME + "ValueError: Input X contains NaN.\n" + went_on) is None
    assert cause(FRAME + "ValueError: Input X contains NaN.\n" + went_on[:400]) == "bad-input-values"


def test_a_loss_that_grew_until_it_broke_points_at_the_learning_rate() -> None:
    text = "".join(f"step {i} loss: {2.0 * 3**i:.4g}\n" for i in range(12)) + "step 12 loss: nan\n"
    assert cause(text) == "learning-rate-too-high"


@pytest.mark.parametrize(
    "ending",
    [
        "Killed",
        "zsh: killed     python train.py",
        "[1]  + 21503 killed     python train.py",
        "fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)",
        "Command terminated by signal 9",
        "subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.",
    ],
)
def test_a_bare_killed_is_probably_memory_and_says_probably(ending: str) -> None:
    answer = why(f"epoch 1 loss 0.3\n{ending}\n")
    assert answer.cause is not None and answer.cause.id == "host-memory-exhausted" and answer.cause.confidence < 0.7


def test_two_errors_nobody_can_tell_apart_are_told_with_less_confidence() -> None:
    answer = why(
        FRAME + "OSError: [Errno 28] No space left on device\n" + FRAME + "IndexError: Target 12 is out of bounds.\n"
    )
    assert answer.cause is not None and answer.cause.id == "disk-full" and answer.cause.confidence <= 0.75


def test_tracebacks_in_richs_boxes_are_read() -> None:
    text = (
        "╭────────────── Traceback (most recent call last) ──────────────╮\n"
        "│ /home/ada/train.py:51 in step                                 │\n│                                                               │\n"
        "│   50 │   x = batch                                            │\n│ ❱ 51 │   out = model(x)                                       │\n"
        "│ /opt/env/lib/python3.11/site-packages/torch/nn/linear.py:9 in forward │\n│ ❱  9 │   return f(x)                 │\n"
        "╰───────────────────────────────────────────────────────────────╯\nRuntimeError: expected scalar type Half but found Float\n"
    )
    answer = why(text)
    assert answer.cause is not None and answer.cause.id == "dtype-mismatch"
    assert any("/home/ada/train.py:51 in step" in item.text for item in answer.cause.evidence)


def test_an_exception_that_was_only_logged_is_read() -> None:
    said = "INFO:tensorflow:Error reported to Coordinator: <class 'tensorflow.python.framework.errors.InvalidArgumentError'>, "
    assert cause(said + "Invalid JPEG data, size 82\n") == "corrupt-file"
    assert cause("ERROR:root:FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'\n") == "missing-file"


def test_a_child_that_got_nothing_to_unpickle_is_an_echo_of_the_parent() -> None:
    child = (
        'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n  File "C:\\py\\lib\\multiprocessing\\spawn.py", line 126, in _main\n'
        "    self = reduction.pickle.load(from_parent)\nEOFError: Ran out of input\n"
    )
    assert cause(child) == "unpicklable-worker-object"
    assert cause(FRAME + "EOFError: Ran out of input\n") == "corrupt-file"


def test_free_memory_on_the_card_tells_a_library_from_a_full_card() -> None:
    handle = "E external/xla/cuda_dnn.cc:439] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
    usage = "E external/xla/cuda_dnn.cc:443] Memory usage: %d bytes free, 47587131392 bytes total.\n"
    assert cause(handle + usage % 46637514752) == "native-library-conflict"
    assert cause(handle + usage % 46637514) == "gpu-memory-held-by-others"


def test_memory_that_only_grew_in_the_log_before_it_ran_out_is_a_leak() -> None:
    oom = FRAME + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
    grew = "".join(f"iter {i} loss 0.3 memory: {1000 + 90 * i}\n" for i in range(20))
    steady = "".join(f"iter {i} loss 0.3 memory: 2459\n" for i in range(20))
    assert cause(grew + oom) == "gpu-memory-leak"
    assert cause(steady + oom) == "gpu-memory-exhausted"


def test_a_loss_of_exactly_zero_with_poor_accuracy_does_not_fit_the_labels() -> None:
    zero = "".join(f"Epoch {i}/9 - loss: 0.0000e+00 - accuracy: 0.1000\n" for i in range(1, 5))
    fine = "".join(f"Epoch {i}/9 - loss: 0.0000e+00 - accuracy: 1.0000\n" for i in range(1, 5))
    assert cause(zero) == "output-loss-mismatch"
    assert cause(fine) is None


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)", "torch.nn.Linear(512, 10)  # was Linear(256, 10)"),
        ("IndexError: Target 12 is out of bounds.", "torch.nn.Linear(128, 13)  # labels go up to 12"),
        ("RuntimeError: index 9 is out of bounds for dimension 0 with size 9", "torch.nn.Embedding(10, 128)  # ids go up to 9, rows were 9"),
        ("RuntimeError: expected scalar type Double but found Float", "x = x.double()  # wanted Double, found Float"),
    ],
)  # fmt: skip
def test_the_figures_of_the_message_are_in_the_remedy(words: str, remedy: str) -> None:
    answer = why(FRAME.replace("model", "torch_model") + words + "\n")
    assert answer.cause is not None and remedy in [item.how for item in answer.cause.remedies]
    assert words.partition(": ")[2][:40] in answer.cause.title


def test_a_pipe_of_this_machine_that_broke_is_a_worker_and_no_network() -> None:
    text = """Traceback (most recent call last):
  File "/home/ann/train.py", line 37, in main
    for x, y in loader:
  File "/usr/lib/python3.11/multiprocessing/connection.py", line 395, in _recv
    chunk = read(handle, remaining)
ConnectionResetError: [Errno 104] Connection reset by peer
"""
    assert cause(text) == "worker-died"


NATIVE = {
    "terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily unavailable\nAborted": "too-many-processes",
    "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)": "host-memory-exhausted",
    "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check\nAborted (core dumped)": "native-crash",
    "2031-02-03 04:05:06.7: E external/xla/local_client.cc:9] Execution of replica 3 failed: Resource exhausted: Out of memory while trying to allocate 9663676416 bytes.": "gpu-memory-exhausted",
    "Node: 'loss/Xent'\nlogits and labels must have the same first dimension, got logits shape [8,9] and labels shape [72]\n\t [[{{node loss/Xent}}]] [Op:__inference_train_function_7]": "shape-mismatch",
}


@pytest.mark.parametrize(("text", "named"), NATIVE.items())
def test_errors_that_no_python_exception_carries_are_read_like_one(text: str, named: str) -> None:
    assert cause(f"Epoch 3/9\n{text}\n") == named


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("[ERROR] [launch.py:9:handler] ['python', 'main.py'] exits with return code = -11", "native-crash"),
        (
            "subprocess.CalledProcessError: Command 'python x.py' returned non-zero exit status -4.",
            "illegal-instruction",
        ),
        ("worker 3 exited with status: 135", "shared-memory-exhausted"),
        ("mpirun noticed that process rank 2 with PID 7 on node n1 exited on signal 11.", "native-crash"),
        (
            "[launch.py] ['python', 'main.py'] exits with return code = -9",
            "host-memory-exhausted",
        ),  # most often, said with doubt
        ("step 120 exits with return code = 1", None),
        ("the job has been aborted. Per user-direction, 1 process returned a non-zero exit code.", None),
    ],
)
def test_how_launchers_tell_a_signal_is_understood_in_any_words(line: str, named: str | None) -> None:
    assert cause(f"Epoch 1/2\n{line}\n") == named


def test_an_error_in_the_loading_of_weights_is_about_the_weights() -> None:
    frame = '  File "/opt/lib/python3.8/site-packages/keras/saving.py", line 9, in preprocess_weights_for_loading\n    w = transpose(w)\n'
    assert cause(f"{FRAME}{frame}ValueError: axes don't match array\n") == "checkpoint-mismatch"
    assert cause(f"{FRAME}ValueError: axes don't match array\n") != "checkpoint-mismatch"


def test_a_crash_after_a_library_could_not_be_set_up_is_left_open() -> None:
    """A full card and an old driver look the same here."""
    text = "E tf/cuda_dnn.cc:9] could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED\nAborted (core dumped)\n"
    assert cause(text) is None


def test_a_hangup_sent_by_a_scheduler_is_its_request_and_no_closed_terminal() -> None:
    assert cause("WARNING - Caught signal SIGHUP on node7: this job is preempted.\n") == "terminated"
    assert cause("worker got signal: 1\n") == "terminal-closed"
