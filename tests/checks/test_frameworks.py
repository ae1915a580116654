"""Frameworks that are installed, by folders that look as pip leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.checks import frameworks
from holdfast.checks.contract import Here, Line
from holdfast.checks.framework_import import imported
from holdfast.checks.gpu_builds import Build, builds
from holdfast.checks.installed import ask, packages
from holdfast.checks.requirements import unmet
from tests.probes.fake_nvml import FakeNvml
from tests.probes.machine import FakeMachine

LINUX = {
    "os_name": "posix", "sys_platform": "linux", "platform_machine": "x86_64", "platform_system": "Linux",
    "python_version": "3.11", "python_full_version": "3.11.7", "platform_python_implementation": "CPython",
    "implementation_name": "cpython", "implementation_version": "3.11.7", "platform_release": "", "platform_version": "",
    "extra": "",
}  # fmt: skip
TORCH = "__version__ = 'X'\ndebug = False\ncuda: Optional[str] = {}\nhip: Optional[str] = None\n"
TENSORFLOW = "build_info = collections.OrderedDict([('is_cuda_build', {}), ('cuda_version', '12.5.1')])\n"


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def install(self, name: str, version: str, *requires: str) -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {one}" for one in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n\nVersion: not this one\n")

    def source(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def torch(self, version: str, cuda: str | None) -> None:
        self.install("torch", version)
        self.source("torch/version.py", TORCH.format(repr(cuda)))

    def tensorflow(self, version: str, is_cuda: bool, name: str = "tensorflow") -> None:
        self.install(name, version)
        self.source("tensorflow/python/platform/build_info.py", TENSORFLOW.format(is_cuda))

    def builds(self, here: Here) -> list[Build]:
        return list(builds(packages([str(self.folder)]), here, ""))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


@pytest.fixture
def with_card(machine: FakeMachine, nvml: FakeNvml) -> FakeMachine:
    machine.write("/dev/nvidiactl", "")
    return machine


# -- how it was built


def test_builds_are_told_without_importing(site: Site, here: Here) -> None:
    site.torch("2.7.0", "12.6")
    site.tensorflow("2.19.0", True)
    site.install("nvidia-cudnn-cu12", "9.5")
    site.install("jax", "0.6.0")
    site.install("jaxlib", "0.6.0")
    site.install("jax-cuda12-plugin", "0.6.0")
    assert site.builds(here) == [
        Build("torch", "2.7.0", True, "12.6"),
        Build("tensorflow", "2.19.0", True, "12.5.1"),
        Build("jax", "0.6.0", True, "12"),
    ]


def test_builds_for_the_cpu(site: Site, here: Here) -> None:
    site.torch("2.7.0+cpu", None)
    site.tensorflow("2.19.0", False, "tensorflow-cpu")
    site.install("jax", "0.6.0")
    site.install("jaxlib", "0.6.0")
    assert [build.gpu for build in site.builds(here)] == [False, False, False]


def test_a_build_that_says_nothing_is_not_blamed(site: Site, here: Here) -> None:
    site.install("torch", "2.6.0a0+ecf3bae40a.nv25.1")
    assert site.builds(here) == [Build("torch", "2.6.0a0+ecf3bae40a.nv25.1", None)]
    assert [line.status for line in frameworks.against_gpu(site.builds(here), 12080)] == ["ok"]


def test_libraries_of_tensorflow_may_be_the_systems(
    site: Site, here: Here, machine: FakeMachine, tmp_path: Path
) -> None:
    site.tensorflow("2.19.0", True)
    assert [build.lacks for build in site.builds(here)] == ["cuDNN and the other CUDA libraries"]
    machine.write("/opt/cuda/libcudnn.so.9", "")
    by_path = replace(here, environment={"LD_LIBRARY_PATH": "/nowhere:/opt/cuda"})
    assert [build.lacks for build in site.builds(by_path)] == [""]
    machine.write("/etc/ld.so.cache", "…libcudnn.so.9…")
    assert [build.lacks for build in site.builds(here)] == [""]


def test_the_first_on_the_path_counts(site: Site, tmp_path: Path) -> None:
    later = Site(tmp_path / "later")
    site.install("torch", "2.7.0")
    later.install("torch", "1.0")
    later.install("some-other-package", "1.0")
    found = packages([str(tmp_path / "gone"), str(site.folder), str(later.folder)])
    assert {name: package.version for name, package in found.items()} == {"torch": "2.7.0"}


# -- against the card


@pytest.mark.parametrize(
    ("built", "driver", "expected"),
    [
        ([Build("torch", "2", False)], None, [("frameworks", "ok")]),
        ([Build("torch", "2", True, "12.6")], 12080, [("frameworks", "ok")]),
        ([Build("torch", "2", True, "12.8")], 12040, [("frameworks", "ok")]),  # newer within a major version runs
        ([Build("torch", "2", False)], 12080, [("torch-gpu", "bad")]),
        ([Build("tensorflow", "2", False)], 12080, [("tensorflow-gpu", "bad")]),
        ([Build("jax", "0.6", False)], 12080, [("jax-gpu", "bad")]),
        ([Build("torch", "2", True, "13.0")], 12080, [("torch-gpu", "bad")]),
        ([Build("torch", "2", True, "13.0")], 0, [("frameworks", "ok")]),
        ([Build("tensorflow", "2", True, "12.5", "cuDNN")], 12080, [("tensorflow-gpu", "bad")]),
        (  # the other one may be there for TensorBoard
            [Build("torch", "2", True, "12.6"), Build("tensorflow", "2", False)],
            12080,
            [("tensorflow-gpu", "warn"), ("frameworks", "ok")],
        ),
    ],
)
def test_a_build_against_the_card(built: list[Build], driver: int | None, expected: list[tuple[str, str]]) -> None:
    found = list(frameworks.against_gpu(built, driver))
    assert [(line.id, line.status) for line in found] == expected
    assert [line for line in found if line.status != "ok" and "pip install" not in line.fix] == []


def seen_by(here: Here, monkeypatch: pytest.MonkeyPatch, site: Site) -> Iterator[Line]:
    """By the Python that runs this test, with those packages before its own."""
    environment = {**here.environment, "PYTHONPATH": str(site.folder)}
    return frameworks.look(replace(here, environment=environment))


def test_a_cpu_build_beside_a_card_is_told_by_the_python_asked(
    with_card: FakeMachine, here: Here, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.torch("9.9+cpu", None)
    site.tensorflow("9.9", False)
    site.install("jax", "0.0.1")
    site.install("jaxlib", "0.0.1")
    found = {line.id: line for line in seen_by(here, monkeypatch, site)}
    assert found["torch-gpu"].status == "bad" and "9.9+cpu" in found["torch-gpu"].text
    hidden = replace(here, environment={"CUDA_VISIBLE_DEVICES": ""})
    assert "torch-gpu" not in {line.id for line in seen_by(hidden, monkeypatch, site)}


def test_a_file_of_the_working_directory_is_not_imported(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported by mistake')")
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path) not in ask(here).path


@pytest.mark.parametrize(
    ("python", "said"),
    [("/no/such/python", "cannot be started"), ("/bin/true", "does not run Python"), ("/bin/sleep", "does not run")],
)
def test_what_is_no_python_is_told(here: Here, python: str, said: str) -> None:
    (line,) = frameworks.look(replace(here, python=python))
    assert line.status == "warn" and said in line.text and "--python" in line.fix


# -- versions


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ([("tensorflow", "2.15", "numpy<2,>=1.23"), ("numpy", "2.1")], ["tensorflow 2.15 needs numpy<2,>=1.23"]),
        ([("tensorflow", "2.15", "numpy<2,>=1.23"), ("numpy", "1.26.4")], []),
        ([("tensorflow", "2.19", "protobuf<6,>=3.20")], ["tensorflow 2.19 needs protobuf<6,>=3.20"]),
        ([("torchvision", "0.20", "torch==2.5.0"), ("torch", "2.5.0+cu124")], []),
        ([("torchvision", "0.20", "torch==2.5.0"), ("torch", "2.7.0+cu124")], ["torchvision 0.20 needs torch==2.5.0"]),
        ([("torch", "2.5", 'triton==3.1; platform_system == "Linux"'), ("triton", "2.0")], ["torch 2.5 needs triton"]),
        ([("torch", "2.5", 'triton==3.1; platform_system == "Windows"'), ("triton", "2.0")], []),
        ([("torch", "2.5", "nvidia-cudnn-cu12==9.1"), ("nvidia-cudnn-cu12", "9.8")], ["torch 2.5 needs nvidia-cudnn"]),
        ([("jax", "0.6", "jaxlib<=0.6,>=0.6"), ("jaxlib", "0.4")], ["jax 0.6 needs jaxlib"]),
        (
            [("jax", "0.6", 'jax-cuda12-plugin<=0.6,>=0.6; extra == "cuda12"'), ("jax-cuda12-plugin", "0.4")],
            ["jax 0.6 needs jax-cuda12-plugin"],
        ),
        # Other extras say what was tried once.
        ([("transformers", "4.40", 'keras<2.16; extra == "tf"'), ("keras", "3.5")], []),
        ([("lightning", "2.5", "no requirement at all ]"), ("numpy", "2.1")], []),
        ([("lightning", "2.5", "some-other-package>=99")], []),
    ],
)
def test_versions_that_do_not_go_together(site: Site, installed: list[tuple[str, ...]], expected: list[str]) -> None:
    for name, version, *requires in installed:
        site.install(name, version, *requires)
    found = list(unmet(packages([str(site.folder)]), LINUX))
    assert [line.status for line in found] == ["warn"] * len(expected)
    assert [line.text.startswith(words) for line, words in zip(found, expected, strict=True)] == [True] * len(expected)


# -- importing them


def test_importing_says_what_each_sees(here: Here, site: Site) -> None:
    """Stand-ins for the frameworks: what counts is what becomes of their answers."""
    environment = {"PYTHONPATH": str(site.folder)}
    site.torch("9.9", "12.6")
    site.source("torch/__init__.py", "class cuda:\n  is_available = lambda: True\n  device_count = lambda: 2\n")
    site.tensorflow("9.9", True)
    site.source("tensorflow/__init__.py", "raise ImportError('libcudart.so.12: cannot open shared object file')")
    site.install("jax", "0.0.1")
    site.install("jaxlib", "0.0.1")
    site.source("jax/__init__.py", "print('hello')\nclass D: platform = 'cpu'\ndevices = lambda: [D]\n")
    said: list[str] = []
    found = {line.id: line for line in imported(replace(here, environment=environment), said.append)}
    assert said == ["importing torch 9.9 …", "importing tensorflow 9.9 …", "importing jax 0.0.1 …"]
    assert found["torch-import"].status == "ok" and "sees 2 GPUs" in found["torch-import"].text
    assert found["tensorflow-import"].status == "bad" and "libcudart.so.12" in found["tensorflow-import"].text
    assert found["jax-import"].status == "ok" and "sees 0 GPUs" in found["jax-import"].text


def test_a_card_that_the_framework_does_not_see_is_bad(with_card: FakeMachine, here: Here, site: Site) -> None:
    site.torch("9.9", "12.6")
    site.source("torch/__init__.py", "class cuda:\n  is_available = lambda: False\n")
    hide = "tensorflow", "jax", "jaxlib"
    for name in hide:
        site.install(name, "0.0.1")
        site.source(f"{name}/__init__.py", "raise ImportError('not asked for here')")
    found = {line.id: line for line in imported(replace(here, environment={"PYTHONPATH": str(site.folder)}), print)}
    assert found["torch-import"].status == "bad" and "the driver has one" in found["torch-import"].text
