"""The copy of a checkpoint's tensors: what is copied beside the loop, the memory it takes, and that a fork shares none of it."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from holdfast.inside.script_state.refusal import CannotTake, NotPrepared  # noqa: E402
from holdfast.inside.torch import copied_memory, seams  # noqa: E402
from holdfast.inside.torch.tensor_store import TensorStore  # noqa: E402


def stored(tensors: list[Any], block: Any = None, unchanged: Any = (), may_wait: bool = False) -> Any:
    store = TensorStore(torch, unchanged)
    for one in tensors:
        store.add(one)
    return store.copied(block, may_wait)


def contents(block: Any, path: Any) -> bytes:
    block.write(str(path))
    return bytes(path.read_bytes())


def test_what_is_copied_beside_the_loop_is_what_it_was_and_the_write_waits_for_it(
    tmp_path: Any, monkeypatch: Any
) -> None:
    tensors, held = [torch.arange(40_000.0), torch.arange(40_000.0) + 1], threading.Event()
    whole = contents(stored(tensors), tmp_path / "whole")
    copy_all = seams.copy_all

    def slowly(*args: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            held.wait(10)
        copy_all(*args)

    monkeypatch.setattr(seams, "copy_all", slowly)
    block = stored(tensors, unchanged={id(tensors[1])})
    threading.Timer(0.05, held.set).start()
    assert contents(block, tmp_path / "beside") == whole


def test_a_state_that_is_written_meanwhile_is_not_saved(tmp_path: Any, monkeypatch: Any) -> None:
    tensor, held, copy_all = torch.zeros(40_000), threading.Event(), seams.copy_all
    monkeypatch.setattr(seams, "copy_all", lambda *args: held.wait(10) and copy_all(*args))
    block = stored([tensor], unchanged={id(tensor)})
    tensor.add_(1)
    held.set()
    with pytest.raises(CannotTake, match="something else than its step"):
        block.write(str(tmp_path / "file"))


def test_memory_is_used_again_where_it_is_large_enough(tmp_path: Any) -> None:
    block = stored([torch.ones(100), torch.ones(50)])
    other = stored([torch.full((20,), 2.0)], block)
    assert other.memory is block.memory
    assert contents(other, tmp_path / "file")[:80] == torch.full((20,), 2.0).numpy().tobytes()
    assert stored([torch.ones(1000)], block).memory is not block.memory


def test_much_memory_is_to_be_touched_before(monkeypatch: Any) -> None:
    monkeypatch.setattr("holdfast.inside.torch.tensor_store.WORTH_WAITING_BYTES", 1000)
    with pytest.raises(NotPrepared) as wanted:
        stored([torch.ones(1000)], may_wait=True)
    assert wanted.value.size == 4032, "a multiple of the alignment"
    assert stored([torch.ones(100)], may_wait=True).bytes == 448


def test_a_forked_child_does_not_share_it() -> None:
    memory = copied_memory.touched(copied_memory.own_memory(torch, 1 << 20))
    address = memory.data_ptr()
    assert _is_mapped(address)
    child = os.fork()
    if not child:
        os._exit(0 if _is_mapped(address) else 7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    del memory
    assert not _is_mapped(address), "it goes back to the system"


def _is_mapped(address: int) -> bool:
    with open("/proc/self/maps") as maps:
        areas = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
    return any(begin <= address < end for begin, end in areas)
