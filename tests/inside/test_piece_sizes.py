from __future__ import annotations

from holdfast.inside.out_of_memory import is_out_of_memory, wanted
from holdfast.inside.piece_sizes import AGAIN_AFTER, Pieces, PiecesByLength, bounds


def test_a_batch_is_cut_without_a_row_lost_or_doubled() -> None:
    for rows in (1, 7, 51, 128):
        for k in (1, 2, 3, 50, 200):
            cuts = bounds(rows, k)
            assert [row for begin, end in cuts for row in range(begin, end)] == list(range(rows))
            assert len({end - begin for begin, end in cuts}) <= 2


def test_pieces_get_smaller_until_one_row_and_then_there_is_nothing_left() -> None:
    pieces, seen = Pieces(), []
    k: int | None = pieces.count(8, "tail")
    while k is not None:
        seen.append(k)
        k = pieces.did_not_fit(8, "tail", k)
    assert seen == [1, 2, 4, 8]


def test_batch_normalisation_gets_two_rows_at_least() -> None:
    pieces = Pieces(least=2)
    assert pieces.did_not_fit(5, "tail", 1) == 2
    assert pieces.did_not_fit(5, "tail", 2) is None
    assert pieces.did_not_fit(3, "tail", 1) is None


def test_a_longer_sequence_has_a_size_of_its_own() -> None:
    pieces = Pieces()
    pieces.did_not_fit(64, (512,), 1)
    assert pieces.count(64, (512,)) == 2
    assert pieces.count(64, (128,)) == 1


def test_a_last_smaller_batch_is_cut_only_as_far_as_needed() -> None:
    pieces = Pieces()
    pieces.did_not_fit(100, "tail", 1)
    assert (pieces.count(100, "tail"), pieces.count(40, "tail")) == (2, 1)


def test_larger_pieces_are_tried_again_and_more_seldom_after_each_failure() -> None:
    pieces, trials, step = Pieces(), [], 0
    pieces.did_not_fit(64, "tail", 1)
    for step in range(8 * AGAIN_AFTER):
        k = pieces.count(64, "tail")
        if k == 1:
            trials.append(step)
            pieces.did_not_fit(64, "tail", 1)
        else:
            pieces.fitted(64, "tail", k)
    assert len(trials) == 2, trials
    assert trials[1] - trials[0] > 3 * trials[0]


def test_running_out_of_memory_is_known_by_type_or_text_and_other_errors_are_not() -> None:
    resource = type("ResourceExhaustedError", (Exception,), {})
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(resource("OOM when allocating tensor with shape[3,4] and type float"))
    assert is_out_of_memory(RuntimeError("CUDA error: out of memory"))
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"))
    assert not is_out_of_memory(resource("/data/x: Too many open files"))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(ValueError("out of memory"))
    assert wanted(resource("OOM when allocating tensor with shape[3,4] and type float")).startswith("shape[3,4]")


def test_a_longer_row_begins_where_the_shorter_ones_are() -> None:
    pieces = PiecesByLength()
    assert pieces.count(32, ((100,),)) == 1
    pieces.did_not_fit(32, ((100,),), 1)
    assert pieces.count(32, ((100,),)) == 2
    assert pieces.count(32, ((200,),)) == 4
    assert pieces.count(32, ((50,),)) == 1
