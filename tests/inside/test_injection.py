"""Coming into the script's Python, and leaving everything else as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import pytest

import holdfast.inside
from holdfast.inside.ring import Reader
from holdfast.journal import Journal
from tests.workplace import Workplace

BOOTSTRAP = Path(holdfast.inside.__file__).parent / "bootstrap"
FAKE_TORCH = '__version__ = "0.0.fake"\n'
SHOW_PATH = "import sys, json; print(json.dumps([sys.path, sorted(sys.modules), sys.flags.isolated]))"


def _interpreters() -> dict[str, str]:
    """Other Pythons on this machine, by version; pyenv's, or those on the path."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in ("2.7", "3.8", "3.9", "3.10", "3.12", "3.13"):
        path = next(iter(sorted(root.glob(f"{version}.*/bin/python"))), None)
        path = path or shutil.which(f"python{version}")
        if path:
            found[version] = str(path)
    return found


INTERPRETERS = _interpreters()


def _other_python(version: str) -> str:
    if version not in INTERPRETERS:
        pytest.skip(f"no Python {version} here")
    return INTERPRETERS[version]


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    path = tmp_path / "channel"
    path.mkdir()
    return path


@pytest.fixture
def injected(channel: Path) -> dict[str, str]:
    """The environment of a script under `holdfast run`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**clean, "PYTHONPATH": str(BOOTSTRAP), "HOLDFAST_CHANNEL": str(channel)}


def _events(channel: Path) -> Iterator[dict[str, Any]]:
    for ring in channel.glob("*.ring"):
        for _, body in Reader(str(ring)).read():
            yield json.loads(body)


def _python(env: dict[str, str], *arguments: str, python: str = sys.executable, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [python, *arguments], env=env, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_the_users_own_sitecustomize_still_runs(injected: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('mine')\nVALUE = 7\n")
    injected["PYTHONPATH"] += os.pathsep + str(tmp_path / "own")
    assert _python(injected, "-c", "import sitecustomize; print(sitecustomize.VALUE)") == "mine\n7\n"


def test_a_sitecustomize_that_fails_does_so_as_it_always_did(injected: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import nowhere_to_be_found\n")
    bare = {**injected, "PYTHONPATH": str(tmp_path)}
    with_us = {**injected, "PYTHONPATH": f"{BOOTSTRAP}{os.pathsep}{tmp_path}"}
    said = [
        subprocess.run([sys.executable, "-c", "print(1)"], env=env, capture_output=True, text=True, check=False)
        for env in (bare, with_us)
    ]
    assert said[0].stdout == said[1].stdout == "1\n" and said[0].returncode == said[1].returncode
    assert "nowhere_to_be_found" in said[0].stderr and "nowhere_to_be_found" in said[1].stderr


def test_the_path_of_the_script_is_unchanged(injected: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for own in ("", str(tmp_path / "elsewhere"), os.pathsep.join([str(tmp_path), str(tmp_path / "elsewhere")])):
        bare = {**injected, "PYTHONPATH": own}
        with_us = {**injected, "PYTHONPATH": os.pathsep.join(filter(None, [str(BOOTSTRAP), own]))}
        assert json.loads(_python(bare, "-c", SHOW_PATH))[0] == json.loads(_python(with_us, "-c", SHOW_PATH))[0]


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-s", "-B", "-O"])
def test_flags_that_shut_us_out_do_no_harm(injected: dict[str, str], tmp_path: Path, flag: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (tmp_path / "train.py").write_text("import sys\nsys.path.insert(0, '.')\nimport torch\nprint(torch.__version__)\n")
    assert _python(injected, flag, "train.py", cwd=tmp_path) == "0.0.fake\n"


def test_a_script_that_sets_its_childrens_path_loses_us_and_nothing_else(workplace: Workplace) -> None:
    source = """
        import os, subprocess, sys
        env = {**os.environ, "PYTHONPATH": "."}
        sys.exit(subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], env=env).returncode)
    """
    (workplace.path / "torch").mkdir()
    (workplace.path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    done = workplace.run(workplace.script(source))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0.0.fake\n", b"")


def test_a_python_without_a_framework_is_as_quick_and_leaves_no_ring(injected: dict[str, str], channel: Path) -> None:
    bare = {**injected, "PYTHONPATH": ""}
    took: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(25):
        for ours, env in ((False, bare), (True, injected)):
            before = getrusage(RUSAGE_CHILDREN)
            _python(env, "-c", "pass")
            after = getrusage(RUSAGE_CHILDREN)
            took[ours].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    added_s = min(took[True]) - min(took[False])  # of processors' time: others may want them too
    assert added_s < 0.005, f"{added_s * 1000:.1f} ms"
    _python(injected, "-m", "pip", "--version")
    assert not list(channel.iterdir())


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_hello_comes_from_other_pythons_and_from_a_framework_that_is_none(
    injected: dict[str, str], channel: Path, tmp_path: Path, version: str
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    python = _other_python(version)
    assert (
        _python(injected, "-c", "import torch; print(torch.__version__)", python=python, cwd=tmp_path) == "0.0.fake\n"
    )
    events = list(_events(channel))
    (hello,) = [event for event in events if event["kind"] == "inside.hello"]
    assert hello["python"].startswith(version)
    (loaded,) = [event for event in events if event["kind"] == "framework.loaded"]
    assert (loaded["name"], loaded["version"]) == ("torch", "0.0.fake")
    assert not [event for event in events if event["kind"] == "inside.failed"]


@pytest.mark.parametrize("framework", ["keras", "tensorflow", "jax"])
def test_an_empty_package_by_a_frameworks_name_is_unharmed(
    injected: dict[str, str], tmp_path: Path, framework: str
) -> None:
    (tmp_path / framework).mkdir()
    (tmp_path / framework / "__init__.py").write_text(FAKE_TORCH)
    assert _python(injected, "-c", f"import {framework}; print('fine')", cwd=tmp_path) == "fine\n"


@pytest.mark.parametrize("version", ["2.7", "3.8"])
def test_pythons_too_old_for_us_are_unharmed(
    injected: dict[str, str], channel: Path, tmp_path: Path, version: str
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    python = _other_python(version)
    assert _python(injected, "-c", "import torch; print('fine')", python=python, cwd=tmp_path) == "fine\n"
    assert not list(channel.iterdir())


def test_a_command_that_is_no_python_is_unharmed(injected: dict[str, str], channel: Path) -> None:
    assert subprocess.run(["ls", "/"], env=injected, capture_output=True, check=True).stderr == b""
    assert not list(channel.iterdir())


def test_a_framework_whose_import_fails_fails_as_it_always_did(injected: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libcudart is missing')\n")
    done = subprocess.run(
        [sys.executable, "-c", "import torch"], env=injected, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stderr.rstrip().endswith("ImportError: libcudart is missing")
    absent = "import importlib.util\ntry:\n    import jax\nexcept ImportError as error:\n    print(error.name)\n"
    if not _has("jax"):
        assert _python(injected, "-c", absent) == "jax\n"


def _has(name: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def test_a_channel_that_cannot_be_written_leaves_the_script_alone(injected: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    for broken in ("/proc", str(tmp_path / "not-there")):
        injected["HOLDFAST_CHANNEL"] = broken
        assert _python(injected, "-c", "import torch; print('fine')", cwd=tmp_path) == "fine\n"


def test_each_rank_of_torchrun_says_hello(workplace: Workplace) -> None:
    pytest.importorskip("torch")
    source = """
        import os
        import torch
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(10 + int(os.environ["RANK"])):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
    """
    workplace.script(source)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]
    done = workplace.run(command, timeout=200)
    assert done.returncode == 0, done.stderr.decode()
    (run,) = [path for path in (workplace.path / ".holdfast/runs").iterdir() if not path.is_symlink()]
    journal = Journal(run / "journal")
    trained = {s.name: s.value for s in journal.samples() if s.name.endswith(".steps_count")}
    assert sorted(value for value in trained.values() if value is not None) == [10, 11]
    hello = [event.data["script"] for event in journal.events("inside.hello")]
    assert sum(script.endswith("train.py") for script in hello) == 2
