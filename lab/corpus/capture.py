"""Runs the programs and keeps what they print: `python -m lab.corpus.capture --environments DIR [NAME ...]`.

DIR holds a virtual environment for each name in `environments.toml`; `current` is the one this runs in. A program runs in each
of its environments that is there; what an older version says is kept only where its words differ.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lab.stage import Stage

from . import captured, program
from .captured import Capture
from .program import Program

TIMEOUT_S = 90.0
CURRENT = "current"
PROJECT, VENV, PYTHON, HOST = "/home/user/project", "/home/user/venv", "/usr", "workstation"
PACKAGES = [
    *(
        "tensorflow-cpu",
        "keras",
        "torch",
        "lightning",
        "transformers",
        "accelerate",
        "safetensors",
        "jax",
        "flax",
        "optax",
    ),
    *("numpy", "pandas", "scikit-learn", "xgboost", "h5py", "pillow", "pyarrow", "datasets"),
]
FRAME = re.compile(r'\s*File "')
MARKS = re.compile(r"[\s~^-]*")
SCRATCH = re.compile(r"/tmp/job-\w+")
ASK = """
import json, os, sys, importlib.metadata as m, numpy
found = {}
for name in sys.argv[1:]:
    try: found[name] = m.version(name)
    except m.PackageNotFoundError: pass
found["python"] = sys.version.split()[0]
places = [sys.prefix, numpy.__file__.split("/lib/python")[0]]
places += [os.path.realpath(place) for place in places]
print(json.dumps({"versions": found, "venv": places, "base": sys.base_prefix}))
"""


class NotKept(Exception):
    """Why an output is not kept, in one line."""


@dataclass(frozen=True, slots=True)
class Environment:
    name: str
    python: Path
    venv: tuple[str, ...]
    base: str
    versions: dict[str, str]


def environment(name: str, python: Path) -> Environment:
    asked = subprocess.run([python, "-c", ASK, *PACKAGES], capture_output=True, text=True, check=True, cwd="/")
    told = json.loads(asked.stdout)
    places = sorted({*told["venv"], str(python.parent.parent)}, key=len, reverse=True)
    return Environment(name, python, tuple(places), told["base"], told["versions"])


def neutral(text: str, where: Environment) -> str:
    """Without a trace of the machine it ran on: paths as a user has them, and no host name."""
    text = SCRATCH.sub(PROJECT, text)
    for place, told in (*((place, VENV) for place in where.venv), (where.base, PYTHON)):
        text = text.replace(place, told)
    text = re.sub(rf"(?<![\w-]){re.escape(socket.gethostname())}(?![\w-])", HOST, text)
    text = re.sub(r"https://pypi\.org/\S*?(?=[)\s]|$)", "https://example.org/package", text)
    left = re.search(r"/work/\S*|/root/\S*|/opt/\S*", text)
    if left is not None:
        raise NotKept(f"it names {left[0]}")
    return text


def capture(one: Program, where: Environment) -> Capture:
    scratch = Path(tempfile.mkdtemp(prefix="job-")).resolve()
    try:
        (scratch / one.file).write_text(one.code)
        (scratch / "job.sh").write_text(one.shell + "\n")
        code, printed = _run(one, where, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if code is None:
        raise NotKept(f"it did not end within {TIMEOUT_S:.0f} s")
    if bool(code) == (one.healthy or one.finishes):
        raise NotKept(f"exit code {code}")
    text = captured.shortened(neutral(printed, where))
    return Capture(one.name, one.family, where.name, one.causes, code, text)


def _run(one: Program, where: Environment, scratch: Path) -> tuple[int | None, str]:
    variables = {
        "PATH": f"{where.python.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(scratch / ".home"),
        "LANG": "C.UTF-8",
        "USER": "user",
        "PYTHONUNBUFFERED": "1",
    }
    with Stage(one.limits, scratch.name) as stage, open(scratch / ".output", "w+b") as output:
        command = stage.wrap(["bash", "job.sh"])
        started = subprocess.Popen(
            command, cwd=scratch, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        try:
            code = started.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = None
        for pid in stage.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        started.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def words(text: str) -> str:
    """What its last traceback says, without frames and figures: versions that only count lines differently say the same."""
    last = text.rpartition("Traceback (most recent call last)")[2].splitlines()
    pairs = zip(["", *last], last, strict=False)
    said = [line for before, line in pairs if not any(map(FRAME.match, (before, line))) and not MARKS.fullmatch(line)]
    return re.sub(r"0x[0-9a-f]+|[\d.:-]+", "#", "\n".join(said[:12]))


def capture_in_all(one: Program, environments: dict[str, Environment]) -> list[Capture]:
    kept: list[Capture] = []
    for name in one.environments:
        if name not in environments:
            continue
        try:
            found = capture(one, environments[name])
        except NotKept as why:
            print(f"{one.name} in {name}: not kept: {why}", file=sys.stderr, flush=True)
            continue
        if all(words(found.text) != words(other.text) for other in kept):
            kept.append(found)
    print(f"{one.name}: {len(kept)} kept", file=sys.stderr, flush=True)
    return kept


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.corpus.capture", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs or families (default: all)")
    parser.add_argument("--environments", type=Path, metavar="DIR", help="where the other virtual environments are")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="programs that run side by side (default: 2)")
    parser.add_argument("--missing", action="store_true", help="only programs of which nothing was captured yet")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's children would ignore it too
    environments = _environments(options.environments)
    before = captured.load_all()
    have = {one.program for one in before}
    chosen = [
        one
        for one in program.load_all()
        if (not options.names or {one.name, one.family} & set(options.names))
        and not (options.missing and one.name in have)
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        found = [each for kept in pool.map(lambda one: capture_in_all(one, environments), chosen) for each in kept]
    again = {one.name for one in chosen}
    for family in {one.family for one in chosen}:
        rest = [one for one in before if one.family == family and one.program not in again]
        captured.save(family, [*rest, *(one for one in found if one.family == family)])
    captured.save_versions(captured.versions() | {name: each.versions for name, each in environments.items()})
    return 0


def _environments(folder: Path | None) -> dict[str, Environment]:
    pythons = {CURRENT: Path(sys.executable)}
    if folder is not None:
        pythons |= {path.name: path / "bin" / "python" for path in folder.iterdir() if (path / "bin").is_dir()}
    return {name: environment(name, python) for name, python in pythons.items()}


if __name__ == "__main__":
    sys.exit(main())
