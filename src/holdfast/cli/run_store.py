"""Where runs are kept, and how one of them is found."""

from __future__ import annotations

import contextlib
import os
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from holdfast.cli.errors import UserError


def chosen_directory(option: str | None) -> Path | None:
    """The state directory the user named, if any."""
    named = option or os.environ.get("HOLDFAST_DIR")
    return Path(named) if named else None


def fallback_directory() -> Path:
    """Where runs go when the working directory cannot be written; one for each such directory."""
    import tempfile  # noqa: PLC0415 - costs the relay a megabyte it seldom needs

    try:
        here = os.getcwd()  # noqa: PTH109 - may be gone
        temporary = tempfile.gettempdir()
    except OSError:
        here, temporary = os.environ.get("PWD", "/"), "/tmp"
    return Path(temporary) / f"holdfast-{os.getuid()}" / f"{zlib.crc32(here.encode('utf-8', 'replace')):08x}"


def search_directories(option: str | None) -> list[Path]:
    named = chosen_directory(option)
    return [named] if named else [Path(".holdfast"), fallback_directory()]


def new_run(option: str | None, name: str) -> tuple[Path | None, str]:
    """Makes the run's directory; returns it with a line for the user where it is not the usual one."""
    named = chosen_directory(option)
    first = named or Path(".holdfast")
    try:
        return _make(first, name), ""
    except OSError as error:
        if named:
            raise UserError(f"cannot write {named}: {error.strerror}; choose another with --dir") from None
        refused = error.strerror
    try:
        made = _make(fallback_directory(), name)
    except OSError as error:
        return (
            None,
            f"nothing of this run is recorded: cannot write .holdfast ({refused}) nor the temporary "
            f"directory ({error.strerror})",
        )
    return made, f"cannot write .holdfast here ({refused}): this run is recorded in {made.parent.parent}"


def make_state(state: Path) -> None:
    _refuse_a_strangers(state.parent)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), open(state / ".gitignore", "x") as ignore:
        ignore.write("*\n")


def _make(state: Path, name: str) -> Path:
    make_state(state)
    runs = state / "runs"
    runs.mkdir(mode=0o700, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    while True:
        run = runs / f"{stamp}-{name or os.urandom(2).hex()}"
        try:
            run.mkdir(mode=0o700)
        except FileExistsError:
            name = f"{name}-{os.urandom(2).hex()}" if name else ""
            continue
        for part in ("journal", "inside"):
            (run / part).mkdir(mode=0o700)
        return run.absolute()


def _refuse_a_strangers(directory: Path) -> None:
    """In a shared temporary directory anyone could have created this name before."""
    if directory.name.startswith("holdfast-") and directory.is_symlink() | directory.exists():
        status = directory.lstat()
        if status.st_uid != os.getuid() or directory.is_symlink():
            raise PermissionError(1, "it belongs to somebody else")


def all_runs(option: str | None) -> list[Path]:
    """Every run found, oldest first."""
    found = [run for state in search_directories(option) for run in _runs_of(state)]
    return sorted(found, key=lambda run: (run.name[:15], run.stat().st_mtime_ns))  # a second may hold several


def _runs_of(state: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        _refuse_a_strangers(state.parent)
        yield from (run for run in (state / "runs").iterdir() if run.is_dir())


def find_run(wanted: str | None, option: str | None) -> Path:
    """The latest run, or the one that a name, an id or the start of one means."""
    if wanted and (Path(wanted) / "journal").is_dir():
        return Path(wanted)
    runs = all_runs(option)
    where = search_directories(option)[0]
    if not runs:
        raise UserError(f"no runs in {where}; record one with: holdfast run COMMAND")
    if wanted is None:
        return runs[-1]
    if not wanted:
        raise UserError("an empty name is no run; leave it out for the latest")
    again = re.compile(re.escape(wanted) + r"(-[0-9a-f]{4})?")  # a name taken twice in one second gets a suffix
    exact = [run for run in runs if wanted == run.name or again.fullmatch(run.name[16:])]
    alike = exact or [run for run in runs if run.name.startswith(wanted) or run.name[16:].startswith(wanted)]
    if not alike:
        raise UserError(f"no such run: {wanted}; `holdfast runs` lists those in {where}")
    return alike[-1]
