"""The newest checkpoint that the script itself has saved, for scripts that resume by an option of their own.

`--resume-args "--resume {checkpoint:out/*.pt}"` names where they are; a bare `{checkpoint}` is the newest file below the
working directory that is named as checkpoints are. One from before the run, and one that a kill has torn, is passed over.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import re
import shlex
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.supervisor.run_spec import PLACEHOLDER

USUAL = re.compile(r".*\.(pt|pth|ckpt|keras|h5|hdf5|safetensors|npz|msgpack|index)|checkpoint[-_]\d+", re.IGNORECASE)
LOOKED_AT = 50_000  # entries; a data set beside the script is not searched to its end
ZIP_START = b"PK\x03\x04"  # torch.save, .keras, .npz


@dataclass(frozen=True, slots=True)
class ScriptCheckpoints:
    path: str
    at: float


def words_to_resume(resume_args: str, cwd: Path, since: float) -> list[str]:
    """What to append to the command; nothing where a checkpoint is asked for and there is none."""
    if not resume_args:
        return []
    found = newest_own(resume_args, cwd, since)
    if PLACEHOLDER.search(resume_args) and found is None:
        return []
    path = found.path if found else ""
    return [PLACEHOLDER.sub(lambda _: path, word) for word in shlex.split(resume_args)]


def newest_own(resume_args: str, cwd: Path, since: float) -> ScriptCheckpoints | None:
    asked = PLACEHOLDER.search(resume_args)
    if asked is None:
        return None
    paths = glob.iglob(str(cwd / asked[1]), recursive=True) if asked[1] else _usual(cwd)  # noqa: PTH207 - may be absolute
    found = []
    for path in itertools.islice(paths, LOOKED_AT):
        with contextlib.suppress(OSError):
            found.append(ScriptCheckpoints(path, os.stat(path).st_mtime))
    found = [one for one in found if one.at >= since]
    whole = (one for one in sorted(found, key=lambda one: one.at, reverse=True) if _is_whole(one.path))
    return next(whole, None)


def _usual(cwd: Path) -> Iterator[str]:
    seen = 0
    for folder, folders, files in os.walk(cwd):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "site-packages"]
        seen += len(folders) + len(files)
        if seen > LOOKED_AT:
            return
        yield from (str(Path(folder) / name) for name in (*folders, *files) if USUAL.fullmatch(name))


def _is_whole(path: str) -> bool:
    """A zip has its table at its end: one that was cut has none."""
    try:
        if os.path.isdir(path):  # noqa: PTH112
            return True
        with open(path, "rb") as file:
            start = file.read(4)
        return bool(start) and (start != ZIP_START or zipfile.is_zipfile(path))
    except OSError:
        return False
