"""What a run printed is named alike, whether the run was recorded or its log is pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.vocabulary import Event
from tests.causes.test_examples import ALL
from tests.replay.both_ways import NOTHING, Verdicts, as_pasted, as_recorded, verdicts, without_what_is_usual
from tests.workplace import Workplace

RECORDED = Path(__file__).parents[1] / "data" / "recorded-before"
FAILED = Event("script.exit", 1_000_000.0, {"code": 1, "signal": None})
FRAME = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\n'
# Each as a program leaves it: what it raised, what it only printed, and what stood before that.
ENDINGS = {
    "a traceback": f"{FRAME}RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)",
    "an exception without its traceback": "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)",
    "a message without its exception": "mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)",
    "a driver's line": "NVRM: Xid (PCI:0000:3b:00): 79, pid=100, name=python, GPU has fallen off the bus.",
    "native code": "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
    "a worker's own before the launcher's": f"{FRAME}OSError: [Errno 28] No space left on device\n{FRAME}RuntimeError: worker 0 failed",
}


def _read(text: str) -> Verdicts:
    output = {"stderr": f"{text}\n".encode()}
    return Verdicts("", as_pasted(output), without_what_is_usual(output), as_recorded(output, FAILED), "")


@pytest.mark.parametrize("how", ENDINGS)
def test_an_ending_is_named_alike(how: str) -> None:
    read = _read("epoch 3 loss 0.31\n" + ENDINGS[how])
    assert read.pasted == read.recorded != NOTHING


def test_a_bare_kill_is_memory_only_where_nothing_but_the_text_is_known() -> None:
    read = _read("epoch 3 loss 0.31\ntrain.sh: line 3: 12345 Killed                  python train.py")
    assert (read.pasted, read.recorded) == ("host-memory-exhausted", NOTHING) and read.agree


def test_the_examples_of_the_causes_are_named_alike() -> None:
    """An eighth of them: three readings of each."""
    texts = sorted({example.text for _, says in ALL for example in says.examples})[::8]
    read = {text: _read(text) for text in texts}
    assert len(read) > 70 and {text: one for text, one in read.items() if not one.agree} == {}
    assert sum(one.pasted == one.recorded for one in read.values()) > 0.9 * len(read)


@pytest.mark.parametrize("name", ["killed", "exception"])
def test_a_recorded_run_is_named_alike_by_its_output(name: str) -> None:
    (run,) = (RECORDED / name / "state" / "runs").iterdir()
    read = verdicts(run)
    assert read is not None and read.agree
    assert (read.recorded, read.whole) == {
        "killed": (NOTHING, "killed"), "exception": ("unhandled-exception", "unhandled-exception")
    }[name]  # fmt: skip


def test_a_run_recorded_now_is_named_alike(workplace: Workplace) -> None:
    source = """
        import sys
        print("epoch 1 loss 0.5", flush=True)
        print("ValueError: Input 0 of layer dense is incompatible with the layer: expected axis -1 of input shape to have "
              "value 8 but received input with shape (None, 7)", file=sys.stderr)
        sys.exit(1)
    """
    workplace.run(workplace.script(source))
    (run,) = (workplace.path / ".holdfast" / "runs").iterdir()
    read = verdicts(run)
    assert read is not None and {read.pasted, read.recorded, read.whole} == {"shape-mismatch"}
