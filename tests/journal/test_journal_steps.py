"""A reading keeps the step it belongs to; on disk that is the column beside it, as it always was."""

from __future__ import annotations

from pathlib import Path

from holdfast.journal import Follower, Journal, JournalWriter
from holdfast.journal.thinning import rewrite
from holdfast.vocabulary import Sample

AT = 1000.0


def write(folder: Path, *rows: list[Sample]) -> Path:
    writer = JournalWriter(folder, "watcher", clock=lambda: AT)
    for number, row in enumerate(rows):
        writer.samples(AT + number, row)
    writer.close()
    return folder


def test_the_step_comes_back_with_its_reading(tmp_path: Path) -> None:
    row = [
        Sample("train.loss", 0.5, AT, step=7),
        Sample("job.rss_bytes", 9.0, AT),
        Sample("train.lr", None, AT, "?", 8),
    ]
    folder = write(tmp_path / "run", row)
    assert list(Journal(folder).samples()) == row
    assert Follower(folder).poll() == row
    assert list(Journal(folder).samples(["train.loss"])) == row[:1]


def test_several_readings_of_one_look_keep_their_own_steps(tmp_path: Path) -> None:
    """They share the look's time in the record, so a join by time gave all of them the same step."""
    row = [Sample("train.rss_bytes", 100.0 * step, AT, step=step) for step in (3, 4, 5)]
    assert list(Journal(write(tmp_path / "run", row)).samples()) == row


def test_a_record_of_before_is_read_and_a_new_one_is_the_same_on_disk(tmp_path: Path) -> None:
    """Before, the step was a sample of its own right after the value."""
    before = [Sample("train.loss", 0.5, AT), Sample("train.loss_step_count", 7.0, AT), Sample("job.rss_bytes", 9.0, AT)]
    now = [Sample("train.loss", 0.5, AT, step=7), Sample("job.rss_bytes", 9.0, AT)]
    old, new = write(tmp_path / "old", before), write(tmp_path / "new", now)
    assert list(Journal(old).samples()) == now
    assert next(old.iterdir()).read_bytes() == next(new.iterdir()).read_bytes()


def test_a_thinned_stretch_knows_the_steps_of_its_ends(tmp_path: Path) -> None:
    levels = [5.0, 9.0, 1.0, 6.0]
    rows = [[Sample("train.loss", level, AT + i, step=10 * i)] for i, level in enumerate(levels)]
    folder = write(tmp_path / "run", *rows)
    rewrite([str(path) for path in folder.iterdir()], 30.0, AT)
    found = [(sample.value, sample.step) for sample in Journal(folder).samples()]
    assert found == [(9.0, 0), (1.0, None), (6.0, 30)]
    assert {sample.name for sample in Journal(folder).samples()} == {"train.loss"}
