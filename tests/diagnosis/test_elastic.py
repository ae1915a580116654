"""One rank fails, the others lose it and are ended: torchrun says which was first, and that one's own error is the cause."""

from __future__ import annotations

import io

import pytest

from holdfast.detectors import find_endings
from holdfast.diagnosis.reading.scan import excerpt
from holdfast.diagnosis.verdict import diagnose, diagnose_log
from holdfast.vocabulary import Cause
from tests.story import story

LOST = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/train.py", line 12, in main
[rank0]:     loss.backward()
[rank0]:   File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 979, in _engine_run_backward
[rank0]:     return Variable._execution_engine.run_backward(
[rank0]: RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:50064. This is typically caused by a remote worker crashing.
"""
LOOKUP = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/train.py", line 15, in <module>
[rank1]:     main()
[rank1]:   File "/home/me/train.py", line 4, in lookup
[rank1]:     return cfg[f"shard{rank}"]
[rank1]: KeyError: 'shard1'
"""
SHORT = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/train.py", line 9, in forward
[rank1]:     return x @ self.weight
[rank1]: RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x100 and 128x10)
"""
SEGFAULT = """\
Fatal Python error: Segmentation fault

Current thread 0x00007fd58602bb80 (most recent call first):
  File "/home/me/decode.py", line 8 in frame
  File "/home/me/train.py", line 12 in <module>

Extension modules: numpy._core._multiarray_umath, torch._C (total: 20)
"""


def report(code: int, name: str = "", others: str = "-15 (pid: 70)  (SIGTERM)") -> str:
    signal = f" ({name})" if name else ""
    return f"""\
W1115 21:55:45.437000 62 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 70 closing signal SIGTERM
E1115 21:55:45.554000 62 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code}) local_rank: 1 (pid: 71) of binary: /opt/venv/bin/python
Traceback (most recent call last):
  File "/opt/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-15_21:55:45
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : {others}
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 70
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-15_21:55:45
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 71) {signal}
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def cause(text: str) -> Cause:
    window = story(1, None, {"stderr": text.encode()})
    found = diagnose(window, find_endings(window)).cause
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "expected", "says"),
    [
        (LOOKUP + LOST + report(1), "unhandled-exception", "train.py:4 in lookup"),
        (LOST + LOOKUP + report(1), "unhandled-exception", "train.py:4 in lookup"),
        (SHORT + LOST + report(1), "shape-mismatch", "32x100"),
        (SEGFAULT + LOST + report(-11, "SIGSEGV"), "native-crash", "decode.py:8 in frame"),
        (LOST + report(-9, "SIGKILL"), "killed", "rank 1 failed first"),
        (LOOKUP + LOST + report(1, others="1 (pid: 70)"), "unhandled-exception", "train.py:4 in lookup"),
    ],
)
def test_the_rank_that_failed_first_names_the_cause(text: str, expected: str, says: str) -> None:
    found = cause(text)
    assert found.id == expected
    assert any(says in item.text for item in found.evidence)
    assert any("rank 1 failed first" in item.text for item in found.evidence)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOKUP + LOST + report(1), "unhandled-exception"),
        (SHORT + LOST + report(1), "shape-mismatch"),
        (SEGFAULT + LOST + report(-11, "SIGSEGV"), "native-crash"),
        (LOST + report(-9, "SIGKILL"), "host-memory-exhausted"),
    ],
)
def test_the_same_report_pasted_says_the_same_but_who_killed_it(text: str, expected: str) -> None:
    found = diagnose_log(excerpt(io.BytesIO(text.encode()))).cause
    assert found is not None and found.id == expected


def test_a_rank_that_only_lost_its_peer_is_not_believed_to_be_the_first() -> None:
    """Both were gone at the same look, and torchrun names the one that tells of the other."""
    text = (
        LOOKUP
        + LOST
        + report(1).replace("rank      : 1 ", "rank      : 7 ").replace("rank      : 0 ", "rank      : 1 ")
    )
    text = text.replace("rank      : 7 ", "rank      : 0 ").replace("-15 (pid: 70)  (SIGTERM)", "1 (pid: 71)")
    found = cause(text)
    assert found.id == "unhandled-exception" and any("train.py:4 in lookup" in item.text for item in found.evidence)


def test_ranks_that_end_well_are_not_asked() -> None:
    window = story(0, None, {"stderr": LOOKUP.encode()})
    assert diagnose(window, find_endings(window)).cause is None


THREW = """\
terminate called after throwing an instance of 'gloo::EnforceNotMet'
  what():  [enforce fail at ../gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4. Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (THREW + LOST + report(-6, "SIGABRT"), "rank-mismatch"),
        (LOST + report(-6, "SIGABRT"), "native-crash"),  # what the other lost is an echo of it
    ],
)
def test_of_a_log_how_the_first_rank_ended_is_no_reason_where_the_text_has_one(text: str, expected: str) -> None:
    found = diagnose_log(excerpt(io.BytesIO(text.encode()))).cause
    assert found is not None and found.id == expected
    assert cause(text).id == expected, "of a recorded run"
