"""What a new failure, a new signal or a new framework costs: one file and its place in one list, for real.

Each is added to a copy of the source, and a training is run by that copy. Nothing but the list is edited.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal import Journal

SOURCE = Path(__file__).parents[1] / "src"

DETECTOR = '''
"""The script said that it gives up."""

from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@reads(output=True)
def find(window: Window) -> Finding | None:
    said = b"I give up" in window.output("stdout")
    return Finding("terminated", 0.97, (Evidence("it said: I give up", "stdout"),)) if said else None
'''
LIVE_DETECTOR = '''
"""The script has lived long enough: its processor time since its first process was seen."""

from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@reads(course=["job.cpu_s"], events=["process.appeared"])
def find(window: Window) -> Finding | None:
    course, first = window.series("job.cpu_s"), window.events("process.appeared")[:1]
    if len(course) < 3 or not first:
        return None
    text = f"{len(course)} readings since {first[0].data['name']} appeared"
    return Finding("cpu-oversubscribed", 0.9, (Evidence(text, "telemetry", course[-1].at),))
'''
PROBE = '''
"""How many files lie where the job runs."""

import os

from holdfast.probes.contract import Reading, Scope
from holdfast.vocabulary import Sample


class Litter:
    name = "litter"
    every_s = 0.0

    def __init__(self, scope: Scope) -> None:
        self.directory = scope.directories[0]

    def read(self, now: float) -> list[Reading]:
        return [Sample("litter.files_count", float(len(os.listdir(self.directory))), now)]
'''
ADAPTER = '''
"""Counts the steps of `tinyframe`, which calls what is in its list after each."""

import sys


def install(recorder):
    sys.modules["tinyframe"].after_step.append(lambda loss: recorder.step(0.001))
'''
FRAMEWORK = """
__version__ = "0.1"
after_step = []

def train(steps):
    for step in range(steps):
        for call in after_step: call(1.0 / (step + 1))
"""


@dataclass
class Copy:
    """Of Holdfast's source, and a folder to run it in."""

    place: Path

    @property
    def package(self) -> Path:
        return self.place / "src" / "holdfast"

    def add(self, path: str, text: str) -> None:
        new = self.package / path
        assert not new.exists()
        new.parent.mkdir(exist_ok=True)
        new.write_text(text.lstrip())

    def enlist(self, path: str, beginning: str, row: str) -> None:
        """A line of its own at the top of the list that begins so."""
        listing = self.package / path
        text, times = re.subn(rf"^({beginning}.*\($)", rf"\1\n    {row}", listing.read_text(), count=1, flags=re.M)
        assert times == 1, f"no list in {path} begins with {beginning}"
        listing.write_text(text)

    def lines_changed(self) -> dict[str, int]:
        """In the files that were there before."""
        return {
            str(path.relative_to(SOURCE / "holdfast")): added
            for path in (SOURCE / "holdfast").rglob("*.py")
            if (added := _added(path, self.package / path.relative_to(SOURCE / "holdfast")))
        }

    def run(self, script: str) -> tuple[dict[str, Any], Journal]:
        (self.place / "train.py").write_text(script)
        (self.place / "tinyframe.py").write_text(FRAMEWORK)
        self.holdfast("run", "--", sys.executable, "train.py")
        why = json.loads(self.holdfast("why", "--json"))
        return why, Journal(self.place / ".holdfast" / "runs" / why["run"] / "journal")

    def holdfast(self, *words: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self.package.parent)}
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words], cwd=self.place, env=environment, capture_output=True, text=True, timeout=100, check=False
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout


def _added(before: Path, after: Path) -> int:
    old, new = before.read_text().splitlines(), after.read_text().splitlines()
    return len(new) - len(old) if old != new else 0


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    yield Copy(tmp_path)


GIVES_UP = "import sys; print('I give up', flush=True); sys.exit(3)\n"


def test_a_detector_is_one_file_and_one_line(copy: Copy) -> None:
    before, _ = copy.run(GIVES_UP)
    assert before["cause"] is None, "nobody knows it yet"
    copy.add("detectors/giving_up.py", DETECTOR)
    listing = "detectors/__init__.py"
    copy.enlist(listing, "FOR_DIAGNOSIS", '_detector("giving-up", "giving_up.find"),')
    after, _ = copy.run(GIVES_UP)
    assert after["cause"]["id"] == "terminated"
    assert [line["text"] for line in after["cause"]["evidence"]][:1] == ["it said: I give up"]
    assert copy.lines_changed() == {listing: 1}


def test_a_live_detector_that_reads_events_and_a_whole_course_is_one_file_and_one_line(copy: Copy) -> None:
    copy.add("detectors/lived_enough.py", LIVE_DETECTOR)
    listing = "detectors/__init__.py"
    copy.enlist(listing, "WHILE_RUNNING", '_detector("lived-enough", "lived_enough.find"),')
    why, journal = copy.run("import time; time.sleep(3.5)\n")
    (told,) = journal.events("finding")
    assert told.data["evidence"][0].startswith("3 readings since python"), "while it ran"
    assert [cause["id"] for cause in why["noticed"]] == ["cpu-oversubscribed"], "and from the record"
    assert copy.lines_changed() == {listing: 1}


def test_a_detector_without_a_declaration_cannot_be_listed(copy: Copy) -> None:
    copy.add("detectors/giving_up.py", DETECTOR.replace("@reads(output=True)\n", ""))
    copy.enlist("detectors/__init__.py", "FOR_DIAGNOSIS", '_detector("giving-up", "giving_up.find"),')
    with pytest.raises(AssertionError, match=r"giving_up\.find does not declare what it reads"):
        copy.holdfast("why")


def test_a_probe_is_one_file_and_one_line(copy: Copy) -> None:
    _, before = copy.run("import time; time.sleep(1)\n")
    assert not list(before.samples(["litter.files_count"]))
    copy.add("probes/litter.py", PROBE)
    copy.enlist("probes/listing.py", "LISTING", '"litter.Litter",')
    _, after = copy.run("import time; time.sleep(1)\n")
    found = list(after.samples(["litter.files_count"]))
    assert found and min(sample.value or 0 for sample in found) >= 3, "the script, its framework and our state"
    assert copy.lines_changed() == {"probes/listing.py": 1}


def test_a_framework_is_one_folder_and_one_row(copy: Copy) -> None:
    trains = "import tinyframe; tinyframe.train(40)\n"
    _, before = copy.run(trains)
    assert not before.events("framework.loaded")
    copy.add("inside/tinyframe/__init__.py", "")
    copy.add("inside/tinyframe/adapter.py", ADAPTER)
    copy.enlist("inside/frameworks.py", "FRAMEWORKS", 'Framework("tinyframe", "Tinyframe", counts_steps=True),')
    _, after = copy.run(trains)
    (loaded,) = after.events("framework.loaded")
    assert (loaded.data["name"], loaded.data["version"]) == ("tinyframe", "0.1")
    assert [sample.value for sample in after.samples(["train.steps_count"])][-1:] == [40.0]
    assert copy.lines_changed() == {"inside/frameworks.py": 1}
