from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest
from journal_making import Recorder, row

from holdfast.journal import Follower, Journal, JournalWriter
from holdfast.vocabulary import Event, Output, Sample

WRITING_PROGRAM = """
import os, sys, time
from pathlib import Path
from holdfast.journal import JournalWriter
from holdfast.vocabulary import Event, Sample

writer = JournalWriter(Path(sys.argv[1]), "watcher", segment_bytes=20_000, segment_s=1e9, keep_raw_s=0.05, bucket_s=0.01)
limit, pause = int(sys.argv[2]), float(sys.argv[3])
for number in range(limit):
    at = time.time()
    writer.event(Event("tick", at, {"number": number}))
    writer.samples(at, [Sample(f"s{i}_count", number if i else None, at, "none yet") for i in range(20)])
    os.write(1, b"%d\\n" % number)  # acknowledged
    if sys.argv[4] == "tend":
        writer.tend(at)
    time.sleep(pause)
writer.close()
"""


def start_writing(
    directory: Path, limit: int, pause: float, tend: str, told: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITING_PROGRAM, str(directory), str(limit), str(pause), tend]
    return subprocess.Popen(command, stdout=told)


@pytest.mark.parametrize("tend", ["tend", "leave"])
@pytest.mark.parametrize("seed", range(5))
def test_kill_minus_nine_loses_nothing_that_was_acknowledged(directory: Path, seed: int, tend: str) -> None:
    acknowledgements = directory.parent / "acknowledged"
    with acknowledgements.open("wb") as told, start_writing(directory, 10**9, 0.0, tend, told) as child:
        while not acknowledgements.stat().st_size:
            time.sleep(0.001)
        time.sleep(random.Random(seed).uniform(0.0, 0.3))
        child.kill()
    acknowledged = int(acknowledgements.read_bytes().rpartition(b"\n")[0].split()[-1])
    journal = Journal(directory)
    numbers = [event.data["number"] for event in journal.events("tick")]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) - 1 >= acknowledged
    assert journal.damage == []
    last = list(journal.samples(["s1_count"]))[-1]
    assert last.value is not None and last.value >= acknowledged


def test_a_follower_sees_what_another_process_appends(directory: Path) -> None:
    follower, found = Follower(directory), []
    with start_writing(directory, 600, 0.001, "leave", subprocess.DEVNULL) as child:
        while child.poll() is None:
            found += follower.poll()
            time.sleep(0.003)
    found += follower.poll()
    assert [one.data["number"] for one in found if isinstance(one, Event)] == list(range(600))
    assert [one.value for one in found if isinstance(one, Sample) and one.name == "s1_count"] == list(range(600))
    assert {one.reason for one in found if isinstance(one, Sample) and one.value is None} == {"none yet"}
    assert follower.poll() == []


def test_a_follower_keeps_up_while_another_process_thins(directory: Path) -> None:
    follower, found = Follower(directory), []
    with start_writing(directory, 1500, 0.0002, "tend", subprocess.DEVNULL) as child:
        while child.poll() is None:
            found += follower.poll()
    found += follower.poll()
    assert [one.data["number"] for one in found if isinstance(one, Event)] == list(range(1500))
    numbers = [one.value for one in found if isinstance(one, Sample) and one.name == "s1_count"]
    assert numbers == sorted(numbers) and len(numbers) == len(set(numbers)) and numbers[-1] == 1499


def test_a_follower_that_slept_through_thinning_and_merging_tells_nothing_twice(directory: Path) -> None:
    recorder = Recorder(directory)
    follower, found = Follower(directory), []
    for seconds in (50, 400, 10, 1200, 30):
        recorder.writer.event(Event("nap", recorder.clock.now, {"seconds": seconds}))
        recorder.seconds(seconds)
        group = [one for one in recorder.writer._retention.segments if one.state == "thinned"][:5]
        if len(group) > 1:
            recorder.writer._retention._thin(group, 40.0 * len(found), recorder.clock.now)
        found += follower.poll()
    assert [one.data["seconds"] for one in found if isinstance(one, Event)] == [50, 400, 10, 1200, 30]
    values = [one.value for one in found if isinstance(one, Sample) and one.name == "signal.0_ratio"]
    assert values == sorted(values) and len(values) == len(set(values)) and values[-1] == 1690.0


def test_a_follower_may_leave_out_old_readings_but_no_event(directory: Path) -> None:
    writer = JournalWriter(directory, "watcher")
    for at in range(10):
        writer.event(Event("tick", float(at)))
        writer.samples(float(at), row(at, [1.0]))
    found = Follower(directory, since=8.0).poll()
    assert [one.at for one in found if isinstance(one, Sample)] == [8.0, 9.0]
    assert len([one for one in found if isinstance(one, Event)]) == 10


def test_a_follower_gives_all_streams_by_time(directory: Path) -> None:
    watcher, output = JournalWriter(directory, "watcher"), JournalWriter(directory, "output")
    follower = Follower(directory)
    output.output(Output("stdout", 1.0, b"a"))
    watcher.event(Event("b", 2.0))
    output.output(Output("stdout", 3.0, b"c"))
    assert [one.at for one in follower.poll()] == [1.0, 2.0, 3.0]
    late = JournalWriter(directory, "late")
    late.event(Event("d", 4.0))
    assert [one.at for one in follower.poll()] == [4.0]


def test_the_journal_is_light_to_import() -> None:
    program = (
        "import sys; before = set(sys.modules); import holdfast.journal; "
        "print(*sorted({'asyncio', 'sqlite3', 'mmap', 'threading', 'logging', 'psutil', 'socket'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
