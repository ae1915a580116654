"""The ranks of a job side by side, in the terminal's width."""

from __future__ import annotations

from holdfast.fleet.events import RankEnded, RankJoined, RankLeft
from holdfast.views.ranks_table import MOST, WIDTH, ranks_table
from holdfast.vocabulary import Event, Window

AT = 1_000_000.0


def job(ranks: int, *ended: Event) -> Window:
    joined = [RankJoined(10 + r, r, ranks, "torchrun", "job", 0, f"node{r // 8}").event(AT) for r in range(ranks)]
    return Window([*joined, *ended, Event("script.exit", AT + 60, {"code": 1, "signal": None})])


def test_the_first_to_stop_is_marked() -> None:
    lost = RankLeft(10, 40, "RuntimeError: Connection closed by peer " + "x" * 200).event(AT + 50.1)
    lines = ranks_table(job(2, lost, RankEnded(11, 1, -9, None).event(AT + 50)))

    assert [line[:8] for line in lines[1:]] == ["       0", "  >    1"]
    assert lines[2].endswith("was ended by SIGKILL")
    assert all(len(line) <= WIDTH for line in lines)


def test_a_large_job_shows_the_first_and_says_how_many_are_left_out() -> None:
    lines = ranks_table(job(64, RankEnded(47, 37, -9, None).event(AT + 50)))

    assert any(line.startswith("  >   37") for line in lines)
    assert lines[-1] == f"    and {64 - MOST} more"


def test_a_process_that_trains_alone_has_no_table() -> None:
    assert ranks_table(job(1)) == []
