"""A token on the command line: the script gets it, no record and no page does, and a resume still works."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import stat
import subprocess
import sys
import zlib
from pathlib import Path

from holdfast.inside import checkpoint_store
from holdfast.supervisor.run_start import EXACT_COMMAND, exact_command, keep_exact_command, recorded_command

SECRET = "x7Abcdefgh12345678"
SCRIPT = "import sys, zlib; print('got', zlib.crc32(sys.argv[-2].encode())); sys.exit(int(sys.argv[-1]))"
GOT = f"got {zlib.crc32(SECRET.encode())}"


def holdfast(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *words], cwd=place, capture_output=True, text=True, timeout=60, check=False
    )


def test_what_is_stored_and_shown_has_no_secret_and_a_resume_has_the_exact_command(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, "--api-key", SECRET, "1"]
    done = holdfast(tmp_path, "run", "--max-restarts", "0", "--", *command)
    assert done.returncode == 1 and GOT in done.stdout, "the script gets what was typed"
    (run,) = (tmp_path / ".holdfast/runs").iterdir()
    exact = run / EXACT_COMMAND
    assert stat.S_IMODE(exact.stat().st_mode) == 0o600 and json.loads(exact.read_text()) == command
    held = [file for file in run.rglob("*") if file.is_file() and not file.is_symlink() and file != exact]
    assert len(held) > 1 and not [file for file in held if SECRET.encode() in file.read_bytes()]
    page = tmp_path / "page.html"
    for words in (["runs", "--json"], ["runs"], ["log"], ["why", "--json"], ["why", "--html", str(page), "--verbose"]):
        shown = holdfast(tmp_path, *words).stdout
        assert shown and SECRET not in shown, words
    report = html.unescape(page.read_text())
    (packed,) = re.findall(r'id="document-packed">([^<]+)<', report)
    drawn = gzip.decompress(base64.b64decode(packed)).decode()
    assert "--api-key '***'" in report and SECRET not in report
    assert "--api-key '***'" in drawn and SECRET not in drawn
    checkpoint_store.write(str(run / "checkpoints"), {"step": 1}, lambda _place: None)
    again = holdfast(tmp_path, "run", "--max-restarts", "0", "--resume")
    assert again.returncode == 1 and GOT in again.stdout, again.stderr


def test_a_run_that_has_finished_leaves_nothing_secret_behind(tmp_path: Path) -> None:
    done = holdfast(tmp_path, "run", "--", sys.executable, "-c", SCRIPT, f"--token={SECRET}", "0")
    assert done.returncode == 0
    (run,) = (tmp_path / ".holdfast/runs").iterdir()
    assert not (run / EXACT_COMMAND).exists()


def test_a_plain_command_needs_no_file_and_one_that_was_cut_has_one(tmp_path: Path) -> None:
    plain = ["python", "train.py", "--lr", "0.1"]
    keep_exact_command(tmp_path, plain)
    assert not (tmp_path / EXACT_COMMAND).exists() and exact_command(tmp_path, recorded_command(plain)) == plain
    long = ["python", "a" * 3000]
    assert exact_command(tmp_path, recorded_command(long)) is None
    keep_exact_command(tmp_path, long)
    assert exact_command(tmp_path, recorded_command(long)) == long
