"""Checkpoints on disk: a directory each, which appears by one rename once everything in it has reached the disk.

Framework-free: the supervisor reads with this too. A save that was torn leaves a directory with a name of its own, which
is never read and is cleared away by the next save. What is read is checked: sizes and checksums, newest first.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zlib
from typing import Any, Callable, Optional, Union

from .library_paths import is_library
from .never_raise import on_error

FORMAT = 1
MANIFEST = "manifest.json"
KEEP = 2
MISMATCH_EXIT = 2  # the script's exit code where a checkpoint does not fit what it built
MOST_KEPT = 32  # ends of parts; an earlier part would be run again
RESERVE_BYTES = 256 << 20  # of the disk, for everybody else…
RESERVE_RATIO = 0.02  # …or this share of it, where that is less
NOT_MATCHING = "this script does not match the checkpoint it should go on from"
NOT_PUT_BACK = "the state at the checkpoint cannot be put back"  # and nobody has edited the script
STARTED = "start-"  # how files are named that the first attempt leaves when it begins
_BEING_SAVED, _BEING_REMOVED = ".saving-", ".removing-"
_AT_ONCE = 1 << 20


class NoSpace(Exception):
    """Writing this one would leave the disk too full. What is there already is kept."""


def write(
    directory: str, manifest: dict[str, Any], fill: Callable[[str], None], expect_bytes: int = 0
) -> dict[str, Any]:
    """`fill` puts its files into the folder it is given. Returns the manifest as written, with "number" and "path"."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    clean(directory)
    check_space(directory, expect_bytes)
    number = max(numbers(directory), default=0) + 1
    place = os.path.join(directory, f"{_BEING_SAVED}{number:08}-{os.getpid()}")
    os.mkdir(place, 0o700)
    with on_error(lambda _error: shutil.rmtree(place, ignore_errors=True)):
        fill(place)
        files = {name: _sealed(os.path.join(place, name)) for name in sorted(os.listdir(place))}
        whole = {**manifest, "format": FORMAT, "number": number, "files": files}
        _put(os.path.join(place, MANIFEST), json.dumps({"manifest": whole, "check": _check_of(whole)}).encode())
        _sync(place)
        path = os.path.join(directory, f"{number:08}")
        os.rename(place, path)
        _sync(directory)
    prune(directory)
    return {**whole, "path": path}


def mismatch(recorder: Any, reason: Union[str, Exception], is_edited: bool = False) -> SystemExit:
    """To be raised: what cannot be put back is not trained over. Recorded, and said to the user."""
    return _ending(recorder, NOT_MATCHING if is_edited or _was_edited(recorder) else NOT_PUT_BACK, reason)


def _was_edited(recorder: Any) -> bool:
    """Whether a file of the script's is newer than what its first attempt has left."""
    directory = str((recorder.settings.get("checkpoint") or {}).get("directory") or "")
    began = [os.path.join(directory, name) for name in names(directory) if name.startswith(STARTED)]
    script = os.path.dirname(os.path.abspath(getattr(sys.modules.get("__main__"), "__file__", None) or "."))
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    near = [
        path for path in files if path and os.path.abspath(path).startswith((script + os.sep, os.getcwd() + os.sep))
    ]
    own = [path for path in near if not is_library(path)]
    try:
        since = min(os.path.getmtime(path) for path in began)
        return any(os.path.getmtime(path) > since for path in own if os.path.exists(path))
    except (OSError, ValueError):
        return True


def refuse_to_resume(recorder: Any, wanted: dict[str, Any], framework: str, reason: str) -> None:
    """With a version of a framework that cannot put a state back: training anew would look like going on."""
    saved = newest(str(wanted["directory"])) if wanted.get("resume") and reason else None
    if saved is not None and saved.get("framework") == framework:
        raise _ending(recorder, "the checkpoint this run should go on from cannot be put back here", reason)


def _ending(recorder: Any, what: str, reason: Union[str, Exception]) -> SystemExit:
    words = (str(reason) or type(reason).__name__).strip().replace("\n", " ")
    recorder.event("checkpoint.mismatch", reason=words, edited=what is not NOT_PUT_BACK)
    may_begin_anew = what is NOT_PUT_BACK and int(recorder.settings.get("attempt") or 1) > 1  # the watcher decides that
    kept = "" if may_begin_anew else ", the checkpoint is kept. To begin anew, start a new run"
    print(f"holdfast: {what}: {words}. Nothing was trained{kept}.", file=sys.stderr, flush=True)
    return SystemExit(MISMATCH_EXIT)


class NotOurs(Exception):
    """Somebody else could have written it: what is unpickled runs."""


def check_owner(path: str) -> None:
    """A checkpoint and the directory it lies in belong to this user, and nobody else can write there."""
    for place in (path, os.path.dirname(path)):
        found = os.stat(place)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise NotOurs(f"{place} belongs to somebody else, or others may write there")


def newest(directory: str) -> Optional[dict[str, Any]]:
    """The manifest of the newest one that is whole, with its "path"; None where there is none."""
    for number in reversed(numbers(directory)):
        found = read(os.path.join(directory, f"{number:08}"))
        if found is not None:
            return found
    return None


def all_of(directory: str) -> list[dict[str, Any]]:
    """Every manifest that reads, oldest first; their files are not checked."""
    found = (_manifest(os.path.join(directory, f"{number:08}")) for number in numbers(directory))
    return [manifest for manifest in found if manifest is not None]


def read(path: str) -> Optional[dict[str, Any]]:
    manifest = _manifest(path)
    if manifest is None:
        return None
    try:
        for name, expected in manifest["files"].items():
            file = os.path.join(path, name)
            if os.path.getsize(file) != expected["bytes"] or _checksum(file) != expected["crc32"]:
                return None
    except (OSError, KeyError, TypeError, AttributeError):
        return None
    return manifest


def numbers(directory: str) -> list[int]:
    return sorted(int(name) for name in names(directory) if name.isdigit() and len(name) == 8)


def names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def size_of(manifest: dict[str, Any]) -> int:
    return sum(int(file["bytes"]) for file in manifest.get("files", {}).values())


def prune(directory: str, keep: int = KEEP) -> None:
    """The last ones stay, and those a manifest says to keep: the ends of finished parts of the script."""
    kept = 0
    for number in reversed(numbers(directory)[:-keep]):
        path = os.path.join(directory, f"{number:08}")
        manifest = _manifest(path)
        kept += bool(manifest and manifest.get("keep"))
        if manifest is None or not manifest.get("keep") or kept > MOST_KEPT:
            remove(path)


def remove(path: str) -> None:
    """Renamed first: half a checkpoint never has a checkpoint's name."""
    directory, name = os.path.split(path)
    away = os.path.join(directory, f"{_BEING_REMOVED}{name}-{os.getpid()}")
    try:
        os.rename(path, away)
    except OSError:
        return
    shutil.rmtree(away, ignore_errors=True)


def remove_all(directory: str) -> None:
    """Also those of ranks, which lie in folders of their own."""
    for folder in (directory, *(os.path.join(directory, name) for name in names(directory))):
        for number in numbers(folder):
            remove(os.path.join(folder, f"{number:08}"))


def clean(directory: str) -> None:
    """What a save or a removal left behind that was torn. Only the one process that saves calls this."""
    for name in os.listdir(directory):
        if name.startswith((_BEING_SAVED, _BEING_REMOVED)):
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def check_space(directory: str, expect_bytes: int) -> None:
    disk = os.statvfs(directory)
    free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    reserve = min(RESERVE_BYTES, int(total * RESERVE_RATIO))
    if free - expect_bytes < reserve:
        raise NoSpace(f"{free >> 20} MiB free on the disk, {expect_bytes >> 20} MiB to write")


def _manifest(path: str) -> Optional[dict[str, Any]]:
    try:
        with open(os.path.join(path, MANIFEST), encoding="utf-8") as file:
            held = json.load(file)
        manifest = held["manifest"]
        if held["check"] != _check_of(manifest) or manifest["format"] != FORMAT:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {**manifest, "path": path}


def _check_of(manifest: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _sealed(path: str) -> dict[str, int]:
    """On the disk, and what it is known by."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
    return {"bytes": os.path.getsize(path), "crc32": _checksum(path)}


def _checksum(path: str) -> int:
    check = 0
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_AT_ONCE):
            check = zlib.crc32(piece, check)
    return check


def _put(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
