"""How each rank ended is seen at once, though the engine is its parent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from holdfast.fleet.events import RankEnded, RankJoined
from holdfast.supervisor.rank_endings import RankEndings
from holdfast.vocabulary import Event
from tests.workplace import wait_for

WAITS = [sys.executable, "-S", "-c", "import sys; sys.exit(len(sys.stdin.read()))"]


class Ranks:
    """Processes that this one has started, and does not ask how they ended."""

    def __init__(self) -> None:
        self.endings = RankEndings()
        self.processes = [subprocess.Popen(WAITS, stdin=subprocess.PIPE) for _ in range(3)]

    def joined(self, number: int) -> Event:
        return RankJoined(self.processes[number].pid, number, 3, "torchrun", "job").event(time.time())

    def end(self, number: int, code: int) -> None:
        stdin = self.processes[number].stdin
        assert stdin is not None
        stdin.write(b"." * code)
        stdin.close()

    def close(self) -> None:
        self.endings.close()
        for process in self.processes:
            process.kill()
            if process.stdin is not None and not process.stdin.closed:
                process.stdin.close()
            process.wait()


@pytest.fixture
def ranks() -> Iterator[Ranks]:
    made = Ranks()
    yield made
    made.close()


def test_exit_codes_and_signals_are_seen_before_the_parent_asks(ranks: Ranks) -> None:
    ranks.endings.look([ranks.joined(number) for number in range(3)])
    ranks.end(0, 3)
    ranks.end(1, 0)
    ranks.processes[2].send_signal(signal.SIGKILL)
    found: dict[int, RankEnded] = {}

    def all_seen() -> bool:
        found.update({event.data["rank"]: RankEnded.of(event) for event in ranks.endings.look([])})
        return len(found) == 3

    wait_for(all_seen)
    assert [found[number].code for number in range(3)] == [3, 0, -9]


def test_a_parent_that_asks_at_once_takes_nothing_away_where_the_kernel_still_tells(ranks: Ranks) -> None:
    """As Ray's does. Before Linux 6.15 how it ended is not known then."""
    ranks.endings.look([ranks.joined(0)])
    waiting = threading.Thread(target=ranks.processes[0].wait)
    waiting.start()
    ranks.processes[0].send_signal(signal.SIGKILL)
    waiting.join()
    (ended,) = wait_for(lambda: ranks.endings.look([]))
    release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])

    assert RankEnded.of(ended).code in ((-9,) if release >= (6, 15) else (-9, None))


def test_the_moment_is_that_of_the_end_not_of_the_next_look(ranks: Ranks) -> None:
    ranks.endings.look([ranks.joined(0)])
    before = time.time()
    ranks.processes[0].send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, ranks.processes[0].pid, os.WEXITED | os.WNOWAIT)
    time.sleep(1.0)
    (ended,) = ranks.endings.look([])

    assert before <= ended.at <= before + 0.9


def test_one_that_ended_before_it_was_heard_of_is_told_without_how(ranks: Ranks) -> None:
    ranks.end(0, 0)
    ranks.processes[0].wait()
    (ended,) = ranks.endings.look([ranks.joined(0)])

    assert RankEnded.of(ended).code is None


def test_a_rank_is_told_of_once(ranks: Ranks) -> None:
    ranks.endings.look([ranks.joined(0)])
    ranks.endings.look([ranks.joined(0)])
    ranks.processes[0].send_signal(signal.SIGKILL)

    assert len(wait_for(lambda: ranks.endings.look([]))) == 1
    assert ranks.endings.look([ranks.joined(0)]) == []
