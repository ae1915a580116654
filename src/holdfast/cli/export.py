"""`holdfast runs export`: the record of a run for other programs. Reads the journal alone; a run that goes on notices nothing."""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.errors import UserError
from holdfast.cli.log import Patterns, Shown
from holdfast.cli.recording import Recording, read_run
from holdfast.cli.run_store import find_run
from holdfast.journal import Follower, Journal, NewerJournal
from holdfast.views.why_json import as_json, masked_json
from holdfast.views.why_text import as_text

if TYPE_CHECKING:
    from holdfast.views.tensorboard_export import TensorBoardRun

LOOK_S = 1.0  # between two looks at a live journal
STEPS = "train.steps_count"


def export(options: argparse.Namespace) -> int:
    if not (options.parquet or options.tensorboard or options.prometheus):
        raise UserError("say where to: --parquet FILE, --tensorboard DIR or --prometheus FILE")
    if options.follow and not options.tensorboard:
        raise UserError("--follow goes with --tensorboard")
    if options.run and not (options.parquet or options.tensorboard):
        raise UserError("--prometheus is of all runs that are going on; leave RUN out")
    if options.prometheus:
        _prometheus(Path(options.prometheus), options.dir)
    if not (options.parquet or options.tensorboard):
        return 0
    run = find_run(options.run, options.dir)
    try:
        if options.parquet:
            _parquet(run, Path(options.parquet))
        if options.tensorboard:
            _tensorboard(run, Path(options.tensorboard), options.follow)
    except NewerJournal as error:
        raise UserError(str(error)) from None
    return 0


def _prometheus(path: Path, directory: str | None) -> None:
    """By one rename: a collector may look at any moment."""
    from holdfast.cli.metrics import metrics_text  # noqa: PLC0415

    text = metrics_text(directory)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with _writing(path):
        try:
            part.write_bytes(text)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _parquet(run: Path, path: Path) -> None:
    try:
        from holdfast.views import parquet_export  # noqa: PLC0415 - an extra
    except ImportError:
        raise UserError("--parquet needs pyarrow; install it with: pip install 'holdfast[parquet]'") from None
    recording = read_run(run)
    verdict = masked_json(as_json(run.name, recording.window, recording.diagnosis))
    with _writing(path):
        samples, events, beside = parquet_export.write(run.name, Journal(run / "journal"), verdict, path)
    print(f"{samples} samples in {path}, {events} events in {beside}")


def _tensorboard(run: Path, folder: Path, follow: bool) -> None:
    try:
        from holdfast.views.tensorboard_export import TensorBoardRun  # noqa: PLC0415 - an extra
    except ImportError:
        raise UserError("--tensorboard needs it; install it with: pip install 'holdfast[tensorboard]'") from None
    trained = next(Journal(run / "journal").samples({STEPS}), None) is not None
    with _writing(folder), _told_once():
        written = TensorBoardRun(folder / run.name, by_seconds=not (trained or follow))
        try:
            _copy(run, written, follow)
            _tell_verdict(read_run(run), written)
        finally:
            written.close()
    print(f"{written.scalars} values and {written.texts} texts in {folder / run.name}")


def _copy(run: Path, written: TensorBoardRun, follow: bool) -> None:
    follower, shown = Follower(run / "journal"), Shown(Patterns(None, everything=True), float("-inf"))
    while True:
        over = shown.is_over()  # looked up first: what was written before the end is read below
        for record, _ in shown.new_of(follower):
            written.take(record)
        written.flush()
        if not follow or over:
            return
        time.sleep(LOOK_S)


def _tell_verdict(recording: Recording, written: TensorBoardRun) -> None:
    text = as_text(recording.run.name, recording.window, recording.diagnosis, recording.damage, colour=False)
    events = recording.window.events()
    written.verdict(text, events[-1].at if events else time.time())


@contextmanager
def _told_once() -> Iterator[None]:
    """tensorboard writes in a thread; an error of the disk's is raised to us as well, and we have a line for it."""
    former = threading.excepthook
    threading.excepthook = lambda failed: None if isinstance(failed.exc_value, OSError) else former(failed)
    try:
        yield
    finally:
        threading.excepthook = former


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
