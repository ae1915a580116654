"""Out of memory on a GPU in TensorFlow, as it is raised, as it aborts, and as the training process told it."""

from __future__ import annotations

import io

import pytest

from holdfast.detectors import find_endings
from holdfast.diagnosis.reading.scan import excerpt
from holdfast.diagnosis.verdict import diagnose, diagnose_log, over_attempts
from holdfast.vocabulary import Cause, Diagnosis, Event
from tests.story import GIB, START, story

TRACEBACK = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 31, in <module>\n'
    "    model.fit(x, y, batch_size=8192)\n"
    '  File "/opt/env/keras/src/utils/traceback_utils.py", line 122, in error_handler\n'
    "    raise e.with_traceback(filtered_tb) from None\n"
)
RAISED = f"{TRACEBACK}tensorflow.python.framework.errors_impl.ResourceExhaustedError: "
XLA = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1241513984 bytes. [Op:__inference_one_step_on_data_1234]\n"
XLA_IN_A_GRAPH = (
    "Graph execution error:\n\nDetected at node StatefulPartitionedCall defined at (most recent call last):\n"
    "<stack traces unavailable>\nOut of memory while trying to allocate 1241513984 bytes.\n"
    "\t [[{{node StatefulPartitionedCall}}]]\n [Op:__inference_one_step_on_iterator_1234]\n"
)
WITH_THE_NODES_OWN_FRAMES = XLA_IN_A_GRAPH.replace(
    "<stack traces unavailable>\n",
    '  File "/home/me/train.py", line 31, in <module>\n\n  File "/opt/env/keras/src/trainer.py", line 9, in fit\n\n',
)
BY_ALLOCATOR = (
    "OOM when allocating tensor with shape[8192,4096] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:MatMul]\n"
)
RAISED_TEXTS = pytest.mark.parametrize(
    "text", [XLA, XLA_IN_A_GRAPH, WITH_THE_NODES_OWN_FRAMES, BY_ALLOCATOR], ids=["xla", "graph", "frames", "allocator"]
)
LOGGED = "2026-01-01 10:00:00.000001: %s external/local_xla/xla/tsl/framework/bfc_allocator.cc:%d] %s\n"
RAN_OUT = LOGGED % ("W", 501, "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.16GiB (rounded to 124)")
NO_FAILURE = RAN_OUT.replace(
    "\n", " with freed_by_count=0. The caller indicates that this is not a failure, but this\n"
)
DUMP = "".join(LOGGED % ("I", 1095, f"InUse at 7f{i:06d} of size 16777216 next {i}") for i in range(300))
BROKE = LOGGED % ("F", 1133, "Check failed: h != kInvalidChunkHandle") + "Fatal Python error: Aborted\n\n"

KERAS = Event("adapter.ready", START, {"name": "keras", "backend": "tensorflow"})
NEEDS = Event(
    "rescue.needs",
    START + 50,
    {"k": 3, "where": "train", "of": "gpu", "needed_bytes": 2 << 30, "limit_bytes": 1 << 30},
)
CAUGHT = Event("rescue.caught", START + 50, {"step": 9, "where": "train", "k": 1, "of": "gpu", "wanted": "1 GiB"})


def _ended(code: int, signal: int | None, text: str, *events: Event, **series: list[float | None]) -> Diagnosis:
    window = story(code, signal, {"stderr": text.encode()}, [KERAS, *events], **series)
    return diagnose(window, find_endings(window))


def _sure(answer: Diagnosis) -> Cause:
    assert answer.cause is not None and answer.cause.confidence >= 0.8, answer
    return answer.cause


def _pasted(text: str) -> Diagnosis:
    return diagnose_log(excerpt(io.BytesIO(text.encode())))


@RAISED_TEXTS
def test_an_exception_of_a_gpu_step_is_the_gpus(text: str) -> None:
    assert _sure(_ended(1, None, RAISED + text)).id == "gpu-memory-exhausted"
    assert _sure(_pasted(RAISED + text)).id == "gpu-memory-exhausted"


def test_xlas_sentence_alone_is_enough_for_a_guess() -> None:
    answer = _pasted("Out of memory while trying to allocate 1241513984 bytes.\n")
    assert answer.cause is not None and answer.cause.id == "gpu-memory-exhausted" and answer.cause.confidence < 0.8


def test_the_same_on_a_cpu_is_the_hosts() -> None:
    text = RAISED + BY_ALLOCATOR.replace("GPU:0", "CPU:0").replace("GPU_0_bfc", "mklcpu")
    assert _sure(_ended(1, None, text)).id == "host-memory-exhausted"
    told = Event("rescue.caught", START + 50, {**CAUGHT.data, "of": "host"})
    assert _sure(_ended(1, None, RAISED + XLA, told)).id == "host-memory-exhausted"


@pytest.mark.parametrize("told", [NEEDS, CAUGHT], ids=["let go", "caught"])
@pytest.mark.parametrize("text", ["", BROKE, RAISED + XLA + BROKE], ids=["silent", "check", "error first"])
def test_an_abort_after_the_process_told_of_it_is_out_of_gpu_memory(told: Event, text: str) -> None:
    cause = _sure(_ended(134, 6, text, told))
    assert cause.id == "gpu-memory-exhausted" and "GPU" in cause.title


def test_an_abort_of_the_allocator_after_it_had_run_out_needs_no_word_from_within() -> None:
    assert _sure(_ended(134, 6, RAN_OUT + DUMP + BROKE)).id == "gpu-memory-exhausted"


def test_an_abort_of_the_allocator_by_itself_is_a_crash() -> None:
    assert _sure(_ended(134, 6, BROKE)).id == "native-crash"
    assert _sure(_ended(134, 6, NO_FAILURE + DUMP + BROKE)).id == "native-crash"


def test_a_crash_long_after_a_rescue_is_a_crash() -> None:
    long_ago = Event("rescue.caught", START - 3600, CAUGHT.data)
    assert _sure(_ended(139, 11, "", long_ago)).id == "native-crash"


def test_an_abort_on_the_gpu_is_not_put_on_the_hosts_budget() -> None:
    at_budget: dict[str, list[float | None]] = {
        "job__memory_budget_bytes": [4 * GIB] * 60,
        "job__rss_bytes": [3.9 * GIB] * 60,
    }
    assert _sure(_ended(134, 6, "", CAUGHT, **at_budget)).id == "gpu-memory-exhausted"
    on_the_host = Event("rescue.caught", START + 50, {**CAUGHT.data, "of": "host"})
    assert _sure(_ended(134, 6, "", on_the_host, **at_budget)).id == "host-memory-exhausted"


def test_what_the_step_needed_stands_in_the_evidence() -> None:
    texts = [item.text for item in _sure(_ended(1, None, RAISED + XLA, NEEDS)).evidence]
    said = "a step of 2 GiB with room for 1 GiB ran out of memory on the GPU; in 3 micro-batches it would fit"
    assert said in texts


def test_a_run_started_again_in_pieces_has_recovered_from_the_gpus_lack_of_memory() -> None:
    first = _ended(134, 6, RAISED + XLA + BROKE, NEEDS)
    second = diagnose(story(0, None, {}, [KERAS, Event("rescue.k", START + 30, {"k": 3, "where": "train"})]), [])
    whole = over_attempts([first, second], 1)
    assert (whole.outcome, whole.cause and whole.cause.id) == ("recovered", "gpu-memory-exhausted")


def test_a_batch_seen_not_to_fit_on_the_gpu_says_so() -> None:
    about = {"where": "train", "rows": 64, "k": 2, "of": "gpu", "step": 1, "needed_bytes": 900 << 20, "left_bytes": 0}
    answer = diagnose(story(0, None, {}, [KERAS, Event("rescue.foreseen", START + 30, about)]), [])
    cause = _sure(answer)
    assert (answer.outcome, cause.id) == ("recovered", "gpu-memory-exhausted")
    assert "needs about 900 MiB; the GPU had 0 MiB left" in cause.evidence[0].text
