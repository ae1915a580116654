"""A step too big for the GPU, in code whose variables are gone with it: started again once, with what was measured."""

from __future__ import annotations

import pytest

from tests.fake_training import fake_training
from tests.workplace import Workplace

# As the part inside Keras tells it, and as TensorFlow then ends.
ADAPTER = (
    "from holdfast.inside.api import _recorder; _recorder().event('adapter.ready', name='keras', backend='tensorflow')"
)
NEEDS = "_recorder().event('rescue.needs', k=3, where='train', of='gpu', needed_bytes=2 << 30, limit_bytes=1 << 30)"
REFUSED = "_recorder().event('rescue.refused', reason='a loss over the whole batch', where='train')"
RAISE = """
class ResourceExhaustedError(Exception): pass
raise ResourceExhaustedError('RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1241513984 bytes.')
"""
ABORT = "print('bfc_allocator.cc:1133] Check failed: h != kInvalidChunkHandle', file=sys.stderr, flush=True); die(6)"


def _fault(*what: str, when: str = "step == 25 and ATTEMPT == 1") -> str:
    body = "\n".join(f"    {line}" for text in what for line in text.strip().splitlines())
    return f"if {when}:\n{body}"


def _tried(out: bytes) -> list[str]:
    return [line for line in out.decode().splitlines() if line.startswith("attempt")]


@pytest.mark.parametrize("end", [RAISE, ABORT], ids=["exception", "abort"])
def test_it_goes_on_from_the_checkpoint_in_as_many_pieces_as_were_measured(workplace: Workplace, end: str) -> None:
    done = workplace.run(fake_training(workplace, _fault(NEEDS, end), before=ADAPTER))
    assert done.returncode == 0, done.stderr
    assert _tried(done.stdout) == ["attempt 1 from 0 k None", "attempt 2 from 20 k 3"]
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("holdfast:")]
    assert told[0].startswith(
        "holdfast: ran out of GPU memory at step 25; starting again from step 20 in 3 micro-batches a step (5 steps, "
    )
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "gpu-memory-exhausted")


def test_the_same_place_a_second_time_is_the_last(workplace: Workplace) -> None:
    fault = _fault(NEEDS.replace("k=3", "k=3 * ATTEMPT"), RAISE, when="step == 25")
    done = workplace.run(fake_training(workplace, fault, before=ADAPTER))
    assert (done.returncode, len(_tried(done.stdout))) == (1, 2)
    assert b"not started again: it ran out of GPU memory there before" in done.stderr
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("failed", "gpu-memory-exhausted")


@pytest.mark.parametrize("before", ["", f"{ADAPTER}\n{REFUSED}"], ids=["no adapter", "refused"])
def test_where_nothing_can_shrink_the_exception_is_the_end(workplace: Workplace, before: str) -> None:
    done = workplace.run(fake_training(workplace, _fault(RAISE), before=before))
    assert (done.returncode, _tried(done.stdout)) == (1, ["attempt 1 from 0 k None"])
    assert b"starting again" not in done.stderr
    assert workplace.why()["cause"]["id"] == "gpu-memory-exhausted"
