"""Bad input to any verb: one line that names what is wrong and what to do, exit 2, no traceback."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace


def _say(workplace: Workplace, *words: str, **how: object) -> tuple[int, str]:
    done = subprocess.run(
        [*HOLDFAST, *words], cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False, **how
    )  # type: ignore[call-overload]
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["run"], "no command given"),
        (["run", "--"], "no command given"),
        (["run", "no-such-program"], "command not found: no-such-program"),
        (["run", "./notes.txt"], "chmod +x ./notes.txt"),
        (["run", "./train.py"], "did you mean: holdfast run python ./train.py"),
        (["run", "."], "is a directory"),
        (["run", "--policy", "wild", "true"], "--policy"),
        (["run", "--memory", "lots", "true"], "'lots' is no size"),
        (["run", "--name", "a/b", "true"], "--name"),
        (["run", "--no-such-option", "true"], "--no-such-option"),
        (["why"], "no runs"),
        (["why", "yesterday"], "no runs"),
        (["train.py"], "no such verb: train.py"),
        (["run", "--resume", "true"], "--resume"),
    ],
)
def test_it_is_named_in_one_line(workplace: Workplace, words: list[str], named: str) -> None:
    (workplace.path / "notes.txt").write_text("hello")
    (workplace.path / "train.py").write_text("print(1)")
    code, said = _say(workplace, *words)
    assert code == 2
    assert named in said
    assert said.startswith("holdfast: ") and said.count("\n") == 1


def test_a_program_the_kernel_refuses_is_named_and_leaves_no_run(workplace: Workplace) -> None:
    odd = workplace.path / "odd"
    odd.write_bytes(b"\x00\x01\x02 no program")
    odd.chmod(0o755)
    code, said = _say(workplace, "run", "./odd")
    assert code == 2
    assert "cannot start ./odd: Exec format error" in said
    assert not list((workplace.path / ".holdfast/runs").iterdir())


def test_no_such_run_is_named(workplace: Workplace) -> None:
    workplace.run(["true"])
    code, said = _say(workplace, "why", "baseline")
    assert (code, said) == (2, "holdfast: no such run: baseline; `holdfast runs` lists those in .holdfast\n")


def test_a_state_directory_that_cannot_be_written_is_named(workplace: Workplace) -> None:
    (workplace.path / "taken").write_text("a file")
    code, said = _say(workplace, "run", "--dir", "taken", "true")
    assert code == 2
    assert "cannot write taken" in said and "--dir" in said
    assert (workplace.path / "taken").read_text() == "a file"


def test_an_unwritable_working_directory_does_not_stop_the_run(
    workplace: Workplace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`.holdfast` cannot be made where a file of that name lies; the run goes on and is recorded elsewhere."""
    (workplace.path / ".holdfast").write_text("in the way")
    temporary = tmp_path_factory.mktemp("temporary")
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = workplace.run(["echo", "ran"], env=environment)
    assert (done.stdout, done.returncode) == (b"ran\n", 0)
    assert done.stderr.startswith(b"holdfast: cannot write .holdfast here")
    explained = subprocess.run(
        [*HOLDFAST, "why"], cwd=workplace.path, env=environment, capture_output=True, check=False
    )
    assert (explained.returncode, explained.stdout[:18]) == (0, b"The run finished.\n")


@pytest.mark.root
def test_a_full_disk_stops_the_record_never_the_run(workplace: Workplace) -> None:
    """The state directory is on a file system of 64 KiB that the script fills to the last byte."""
    (workplace.path / "state").mkdir()
    command = workplace.script("""
        import os, time
        hog = os.open("state/hog", os.O_WRONLY | os.O_CREAT)
        try:
            while True: os.write(hog, b"x" * 512)
        except OSError: pass
        time.sleep(2.5)
        print("done")
    """)
    words = " ".join([*HOLDFAST, "run", "--dir", "state", "--", *command])
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "bash", "-c",
         f"mount -t tmpfs -o size=64k none state && {words}; echo code $?; cp -r state/runs kept"],
        cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.stdout == b"done\ncode 0\n", done.stderr
    assert b"could not be written" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_journal_of_a_newer_version_is_named(workplace: Workplace) -> None:
    workplace.run(["true"])
    for segment in (workplace.path / ".holdfast/runs").glob("*/journal/*.seg"):
        segment.write_bytes(_of_version(2, segment.read_bytes()))
    code, said = _say(workplace, "why")
    assert code == 2
    assert "newer" in said and said.count("\n") == 1


def _of_version(version: int, segment: bytes) -> bytes:
    """The header is magic, version, what it stands for, and a checksum of all that."""
    header = segment[:8] + struct.pack("<I", version) + segment[12:32]
    return header + struct.pack("<I", zlib.crc32(header)) + segment[36:]


def test_a_journal_cut_anywhere_gives_one_clear_answer(workplace: Workplace) -> None:
    """Every byte offset is tried on the reader itself; here a spread of them goes through the whole command."""
    workplace.run(workplace.script("raise ValueError('bad')"))
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    kept = workplace.path / "kept"
    shutil.copytree(run / "journal", kept)
    segments = {segment.name: segment.read_bytes() for segment in kept.iterdir()}
    longest = max(len(data) for data in segments.values())
    for cut in [*range(0, 40, 7), *range(40, longest, max(1, longest // 12))]:
        for name, data in segments.items():
            (run / "journal" / name).write_bytes(data[:cut])
        done = subprocess.run([*HOLDFAST, "why"], cwd=workplace.path, capture_output=True, check=False)
        assert done.returncode in (0, 3), (cut, done.stderr)
        assert done.stdout and not done.stderr, (cut, done.stderr)


def test_a_run_whose_record_is_gone_is_listed_all_the_same(workplace: Workplace) -> None:
    workplace.run(["true"])
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    for segment in (run / "journal").iterdir():
        segment.unlink()
    listed = subprocess.run([*HOLDFAST, "runs"], cwd=workplace.path, capture_output=True, check=True).stdout.decode()
    assert run.name in listed and "unknown" in listed
    assert Path(run).exists()
