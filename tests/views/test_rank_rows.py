"""The ranks of a job on every screen: steps, their own part of each, and who was first to stop."""

from __future__ import annotations

from dataclasses import replace

from holdfast.fleet.events import RankEnded, RankJoined
from holdfast.recorded_events import FIRST_TRAINER, Exit
from holdfast.views.overview import overview
from holdfast.views.rank_rows import rank_rows
from holdfast.views.top import panels
from holdfast.views.top.panels import UNICODE, Canvas, Verdict
from holdfast.views.web import sections
from holdfast.vocabulary import Event, Sample, Window

AT = 1_000_000.0
CANVAS = Canvas(80, UNICODE)


def job(*ended: Event) -> Window:
    joined = [RankJoined(10 + r, r, 2, "torchrun", "job", 0, f"<node{r}>").event(AT) for r in range(2)]
    paces = [("train", 0.031), ("train[11]", 0.094)]
    samples = [Sample(f"{name}.own_s", own_s, AT + 9) for name, own_s in paces]
    samples += [Sample(f"{name}.steps_count", 40.0, AT + 9) for name, _ in paces]
    samples += [Sample(f"{name}.step_s", 0.1, AT + 9) for name, _ in paces]
    return Window([Event(FIRST_TRAINER, AT, {"pid": 10}), *joined, *ended], {one.name: [one] for one in samples})


KILLED = job(RankEnded(11, 1, -9, None).event(AT + 10), Exit(1).event(AT + 11))


def test_while_they_run_each_shows_what_is_its_own_of_a_step() -> None:
    rows = panels.rank_rows(overview("run", job()), None, CANVAS)

    assert [row.text.split() for row in rows[1:]] == [
        ["0", "<node0>", "40", "100", "ms", "31", "ms"],
        ["1", "<node1>", "40", "100", "ms", "94", "ms"],
    ]


def test_the_first_to_stop_is_marked() -> None:
    rows = panels.rank_rows(overview("run", KILLED), None, CANVAS)

    assert (rows[2].text[0], rows[2].weight) == (">", "bad")
    assert rows[2].text.endswith("was ended by SIGKILL")


def test_a_run_of_one_rank_shows_the_ranks_of_its_job() -> None:
    alone = replace(overview("run", job()), ranks=())

    assert panels.rank_rows(alone, Verdict("running", ""), CANVAS) == []
    assert len(panels.rank_rows(alone, Verdict("running", "", ranks=rank_rows(job())), CANVAS)) == 3


def test_the_page_has_them_in_a_table_and_names_of_hosts_are_text() -> None:
    page = "".join(sections.ranks(rank_rows(KILLED)))

    assert '<tr class="first"><td>1</td><td>&lt;node1&gt;</td><td>40</td>' in page
    assert sections.ranks(()) == []
