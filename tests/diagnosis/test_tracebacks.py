"""Tracebacks are read as structure: types, messages, chains, and the user's own frame."""

from __future__ import annotations

import pytest

from holdfast.diagnosis.plain_text import lines_of
from holdfast.diagnosis.tracebacks import Raised, last_chain, last_fatal, user_frame

CHAINED = b"""Epoch 1/3
Traceback (most recent call last):
  File "/home/ada/train.py", line 12, in load
    return table[key]
           ~~~~~^^^^^
KeyError: 'label'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ada/train.py", line 40, in <module>
    main()
  File "/opt/env/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler
    raise e.with_traceback(filtered_tb) from None
ValueError: no label
in row 7
"""
WORKER = b"""Traceback (most recent call last):
  File "/home/ada/train.py", line 30, in <module>
    for batch in loader:
  File "/opt/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 701, in __next__
    data = self._next_data()
ZeroDivisionError: Caught ZeroDivisionError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
    data = fetcher.fetch(index)
  File "/home/ada/data.py", line 9, in __getitem__
    return self.items[i] / self.scale
ZeroDivisionError: division by zero
"""


def test_a_chain_is_read_from_its_first_exception() -> None:
    chain = last_chain(lines_of(CHAINED))
    assert [raised.type for raised in chain] == ["KeyError", "ValueError"]
    assert chain[1].message == "no label\nin row 7"


def test_the_users_frame_is_the_innermost_of_his_own() -> None:
    chain = last_chain(lines_of(CHAINED))
    assert str(user_frame(chain[0].frames)) == "/home/ada/train.py:12 in load"
    assert str(user_frame(chain[1].frames)) == "/home/ada/train.py:40 in <module>"


def test_a_workers_own_traceback_comes_first() -> None:
    chain = last_chain(lines_of(WORKER))
    assert [str(user_frame(raised.frames)) for raised in chain] == [
        "/home/ada/data.py:9 in __getitem__", "/home/ada/train.py:30 in <module>",
    ]  # fmt: skip


def test_only_the_last_of_several_tracebacks_counts() -> None:
    handled = CHAINED.replace(b"no label", b"handled and printed")
    assert last_chain(lines_of(handled + b"going on\n" + WORKER))[-1].type == "ZeroDivisionError"


def test_colours_rank_prefixes_and_progress_bars_do_not_hide_it() -> None:
    coloured = CHAINED.replace(b"KeyError", b"\x1b[1;35mKeyError\x1b[0m").replace(b"\n", b"\r\n")
    ranked = b"\n".join(b"[rank0]: " + line for line in WORKER.split(b"\n"))
    bar = b"10/100 loss 3\r20/100 loss 2\rTraceback (most recent call last):"
    assert [raised.type for raised in last_chain(lines_of(coloured))] == ["KeyError", "ValueError"]
    assert last_chain(lines_of(ranked))[0].message == "division by zero"
    assert last_chain(lines_of(CHAINED.replace(b"Traceback (most recent call last):", bar, 1)))[0].type == "KeyError"


def test_a_cut_traceback_is_no_traceback() -> None:
    for end in range(0, len(WORKER), 17):
        last_chain(lines_of(WORKER[:end]))
    assert last_chain(lines_of(WORKER[:200])) == []


def test_faulthandlers_dump_gives_the_thread_that_broke() -> None:
    dump = b"""Fatal Python error: Segmentation fault

Thread 0x00007f11 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait

Current thread 0x00007f22 (most recent call first):
  File "/opt/env/lib/python3.11/site-packages/decoder/api.py", line 5 in decode
  File "/home/ada/train.py", line 21 in step

Extension modules: numpy._core (total: 1)
Segmentation fault (core dumped)
"""
    fatal = last_fatal(lines_of(dump))
    assert fatal is not None and fatal.reason == "Segmentation fault"
    assert [frame.line for frame in fatal.frames] == [5, 21]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "{{function_node __wrapped__X_device_/job:a}} Received a label value of 9 [Op:X]",
            "Received a label value of 9 [Op:X]",
        ),
        (
            "Graph execution error:\n\nDetected at node a/b defined at (most recent call last):\n<stack traces unavailable>\nshapes differ\n\t [[{{node a/b}}]]",
            "shapes differ",
        ),
        (
            "{{function_node x}} Error in user-defined function passed to MapDataset:6 transformation with iterator: Root::Map: indices[8] = 42 is not in [0, 10)",
            "indices[8] = 42 is not in [0, 10)",
        ),
        ("Graph execution error:", "Graph execution error:"),
        ("first\nsecond", "first"),
    ],
)
def test_of_a_message_of_tensorflows_what_happened_is_shown_and_not_the_node(message: str, shown: str) -> None:
    assert Raised("InvalidArgumentError", message, ()).telling_line == shown
