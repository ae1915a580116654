from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.audit_progress import progress
from holdfast.cli.errors import UserError
from holdfast.cli.run_store import search_directories

if TYPE_CHECKING:
    from holdfast.data.audit import Request
    from holdfast.data.audit.report import Report
    from holdfast.data.fix.rules import Rules

INSTALL = "pip install 'holdfast[audit]'"


class AuditVerb:
    """Says whether data is fit to train on, before a run finds out: NaN and infinities with their rows, labels out of range,
    files that cannot be read, shapes and types that differ, numbers written as text, duplicates, rows in two sets.

    holdfast audit data/                                     all files below it that can be read
    holdfast audit train.csv --labels species --classes 3    is each label one of 0, 1, 2
    holdfast audit train/ --against validation/              are rows of one in the other
    holdfast audit data/ --fix clean/ --impute median        a cleaned copy; --drop-rows and --clip LO HI do that, too

    Reads .npy, .npz, CSV, Parquet, Zarr, TFRecord, image folders, Arrow, HDF5 and webdataset tars, larger than memory, and
    never writes to them. Exits 1 when something breaks training, else 0. After Ctrl-C it goes on by file the next time.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH", help="files or folders")
        parser.add_argument("--json", action="store_true", help="what was found as JSON")
        parser.add_argument("--html", metavar="FILE", help="also as a page, with a histogram of each column")
        parser.add_argument("--labels", metavar="COLUMN", help="the column that holds the labels: its name or number")
        parser.add_argument("--classes", metavar="N", type=_classes, help="how many classes there are, numbered from 0")
        parser.add_argument(
            "--against",
            metavar="PATH",
            action="append",
            default=[],
            help="the other set: which of its rows are in PATH, too",
        )
        parser.add_argument(
            "--quick", action="store_true", help="only what breaks training: no duplicates, ranges and scales"
        )
        parser.add_argument(
            "--rules", metavar="FILE.py", help="a pandera schema that each table must keep; the file is run"
        )
        parser.add_argument(
            "--fix", metavar="OUT", help="write a cleaned copy to this folder, with a list of all changes"
        )
        parser.add_argument(
            "--impute", metavar="median|mean|VALUE", type=_impute, help="what stands in for a bad value"
        )
        parser.add_argument("--drop-rows", action="store_true", help="leave out rows that have a bad value")
        parser.add_argument("--clip", metavar=("LO", "HI"), nargs=2, type=float, help="bring values into this range")
        parser.add_argument("--dir", help="where an interrupted audit is kept (default: ./.holdfast, or $HOLDFAST_DIR)")

    def run(self, options: argparse.Namespace) -> int:
        try:
            import numpy  # noqa: F401, PLC0415 - an extra
        except ModuleNotFoundError:
            raise UserError(f"audit needs NumPy and readers of data formats: {INSTALL}") from None
        from holdfast.data.audit import Request  # noqa: PLC0415
        from holdfast.data.audit.own_rules import NoRules, OwnRules  # noqa: PLC0415
        from holdfast.data.audit.tables import Wanted  # noqa: PLC0415
        from holdfast.data.formats.contract import NeedsPackage  # noqa: PLC0415

        wanted = Wanted(options.labels, options.classes, options.quick)
        if options.classes is not None and options.labels is None:
            raise UserError("--classes says how many there are: name the column with --labels COLUMN, too")
        rules = _rules(options)
        try:
            own = OwnRules(Path(options.rules)) if options.rules else None
            request = Request(_files(options.paths), _files(options.against), wanted, own)
            if rules is not None:
                return _fix(options, request, rules)
            report = _audited(options, request)
        except (NeedsPackage, NoRules) as error:
            raise UserError(str(error)) from None
        _show(options, report)
        return 1 if report.breaks_training else 0


def _audited(options: argparse.Namespace, request: Request) -> Report:
    from holdfast.data.audit import audit, size_of  # noqa: PLC0415
    from holdfast.data.audit.kept import Kept  # noqa: PLC0415

    kept = Kept(search_directories(options.dir)[0], request.wanted)
    sizes = {path: size_of(path) for path in [*request.files, *request.against]}
    try:
        with progress(sizes) as watching:
            report = audit(request, kept, watching)
    except KeyboardInterrupt:
        kept.save()
        print(
            f"holdfast: stopped; {kept.done} of {len(sizes)} files are done, the same command goes on", file=sys.stderr
        )
        raise
    kept.forget()
    is_read = not any(finding.id == "unreadable" for finding in report.findings)
    if options.labels is not None and not report.labels_found and is_read:
        names = ", ".join(dict.fromkeys(column.name for table in report.tables for column in table.columns[:8]))
        raise UserError(f"no column is named {options.labels}; there are {names or 'none'}")
    return report


def _show(options: argparse.Namespace, report: Report) -> None:
    from holdfast.views.audit_json import as_json  # noqa: PLC0415
    from holdfast.views.audit_text import as_text  # noqa: PLC0415

    if options.html is not None:
        from holdfast.views.web.audit_page import audit_page  # noqa: PLC0415

        try:
            Path(options.html).write_text(audit_page(report))
        except OSError as error:
            raise UserError(f"cannot write {options.html}: {error.strerror}; choose another file") from None
    if options.json:
        print(as_json(report))
    else:
        print(as_text(report, shutil.get_terminal_size((120, 24)).columns, sys.stdout.isatty()))


def _fix(options: argparse.Namespace, request: Request, rules: Rules) -> int:
    from holdfast.data.fix.cleaning import clean  # noqa: PLC0415
    from holdfast.data.fix.rules import CannotFix  # noqa: PLC0415
    from holdfast.views.audit_text import fix_as_text  # noqa: PLC0415

    out = Path(options.fix)
    try:
        done = clean(_places([Path(name) for name in options.paths], out), rules)
    except CannotFix as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"cannot write {error.filename or out}: {error.strerror or error}") from None
    if options.json:
        told = [
            {"path": str(one.source), "copy": None if one.refused else str(one.target), "changed": one.changed,
             "dropped": one.dropped, "was_there": one.was_there, "refused": one.refused or None}
            for one in done.files
        ]  # fmt: skip
        print(json.dumps({"complete": done.complete, "files": told}, indent=2))
    else:
        print(fix_as_text(done))
    return 0 if done.complete else 1


def _places(named: list[Path], out: Path) -> list[tuple[Path, Path]]:
    """A file goes into the folder, or to the very file where one of its kind is named."""
    pairs: list[tuple[Path, Path]] = []
    if len(named) == 1 and named[0].is_file() and out.suffix == named[0].suffix and not out.is_dir():
        return [(named[0], out)]
    for path in named:
        for file in _files([str(path)]):
            below = file.relative_to(path) if path.is_dir() and file != path else Path(file.name)
            pairs.append((file, out / below))
    doubled = len({target for _, target in pairs}) < len(pairs)
    if doubled:
        raise UserError("two of the files have the same name and would go to the same place; clean them one by one")
    return pairs


def _rules(options: argparse.Namespace) -> Rules | None:
    from holdfast.data.fix.rules import Rules  # noqa: PLC0415

    asked = options.impute is not None or options.drop_rows or options.clip is not None
    if options.fix is None:
        if asked:
            raise UserError("--impute, --drop-rows and --clip say how to clean: give --fix OUT, a folder for the copy")
        return None
    if not asked:
        raise UserError("say how to clean: --impute median, --impute mean, --impute 0, --drop-rows or --clip LO HI")
    if options.impute is not None and options.drop_rows:
        raise UserError("--impute and --drop-rows exclude each other: a bad value is replaced, or its row is left out")
    clip = tuple(options.clip) if options.clip else None
    if clip is not None and not clip[0] < clip[1]:
        raise UserError(f"--clip {clip[0]:g} {clip[1]:g}: the first must be below the second")
    return Rules(options.impute, options.drop_rows, clip, options.labels, options.classes)


def _impute(text: str) -> str | float:
    if text in ("median", "mean"):
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text}: give median, mean or a number")
    return value


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
            below = files_below(path)
            if not below:
                raise UserError(f"{name}: nothing in it can be read; the endings are {', '.join(sorted(ENDINGS))}")
            found += below
        elif format_of(path) is None:
            raise UserError(f"{name}: its format is not known; the endings are {', '.join(sorted(ENDINGS))}")
        else:
            found.append(path)
    return list(dict.fromkeys(found))
