from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from holdfast.cli.errors import UserError
from holdfast.cli.run_store import search_directories

INSTALL = "pip install 'holdfast[audit]'"


class AuditVerb:
    """Says whether data is fit to train on, before a run finds out: NaN and infinities with their rows, labels out of range,
    files that cannot be read, shapes and types that differ, numbers written as text, duplicates, rows in two sets.

    holdfast audit data/                                     all files below it that can be read
    holdfast audit train.csv --labels species --classes 3    is each label one of 0, 1, 2
    holdfast audit train/ --against validation/              are rows of one in the other

    Reads .npy, .npz, CSV, Parquet, Zarr, TFRecord, image folders, Arrow, HDF5 and webdataset tars, larger than memory.
    Changes nothing. Exits 1 when something breaks training, else 0. Stopped with Ctrl-C it goes on by file the next time.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="files or folders")
        parser.add_argument("--json", action="store_true", help="the findings as JSON")
        parser.add_argument(
            "--labels", metavar="COLUMN", help="the column that holds the labels: its name, or its number"
        )
        parser.add_argument("--classes", metavar="N", type=_classes, help="how many classes there are, numbered from 0")
        parser.add_argument(
            "--against",
            metavar="PATH",
            action="append",
            default=[],
            help="the other set: which of its rows are in PATH…, too",
        )
        parser.add_argument(
            "--quick", action="store_true", help="only what breaks training: no duplicates, ranges and scales"
        )
        parser.add_argument("--dir", help="where an interrupted audit is kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        try:
            import numpy  # noqa: F401, PLC0415 - an extra
        except ModuleNotFoundError:
            raise UserError(f"audit needs NumPy and readers of data formats: {INSTALL}") from None
        from holdfast.data.audit import Request, audit  # noqa: PLC0415
        from holdfast.data.audit.kept import Kept  # noqa: PLC0415
        from holdfast.data.audit.tables import Wanted  # noqa: PLC0415
        from holdfast.data.formats.contract import NeedsPackage  # noqa: PLC0415
        from holdfast.views.audit_json import as_json  # noqa: PLC0415
        from holdfast.views.audit_text import as_text  # noqa: PLC0415

        wanted = Wanted(options.labels, options.classes, options.quick)
        request = Request(_files(options.paths), _files(options.against), wanted)
        kept = Kept(search_directories(options.dir)[0], wanted)
        try:
            report = audit(request, kept)
        except NeedsPackage as error:
            raise UserError(str(error)) from None
        kept.forget()
        if options.json:
            print(as_json(report))
        else:
            print(as_text(report, shutil.get_terminal_size((120, 24)).columns, sys.stdout.isatty()))
        return 1 if report.breaks_training else 0


def _classes(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of classes, as in --classes 10")
    return number


def _files(named: list[str]) -> list[Path]:
    from holdfast.data.formats import ENDINGS, files_below, format_of  # noqa: PLC0415

    found: list[Path] = []
    for name in named:
        path = Path(name)
        if not path.exists():
            raise UserError(f"{name}: there is no such file or folder")
        if path.is_dir():
            below = list(files_below(path))
            if not below:
                raise UserError(f"{name}: nothing in it can be read; the endings are {', '.join(sorted(ENDINGS))}")
            found += below
        elif format_of(path) is None:
            raise UserError(f"{name}: its format is not known; the endings are {', '.join(sorted(ENDINGS))}")
        else:
            found.append(path)
    return list(dict.fromkeys(found))
