"""Whether an installed framework was built for NVIDIA's GPUs, for which CUDA, and whether the libraries it needs are there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.checks.contract import Here
from holdfast.checks.installed import Package
from holdfast.probes.kernel_files import read, under

TORCH_CUDA = re.compile(r"^cuda\b[^=\n]*= *(?:None|['\"](?P<version>[\d.]+)['\"])", re.MULTILINE)
TENSORFLOW_IS_CUDA = re.compile(r"['\"]is_cuda_build['\"]\s*[,:]\s*(?P<is>True|False)")
TENSORFLOW_CUDA = re.compile(r"['\"]cuda_version['\"]\s*[,:]\s*['\"](?P<version>[\d.]+)['\"]")
JAX_PLUGIN = re.compile(r"jax-cuda(?P<version>\d+)-plugin")
TENSORFLOWS = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly")


@dataclass(frozen=True, slots=True)
class Build:
    framework: str
    version: str
    gpu: bool | None  # None: cannot be told without importing it
    cuda: str = ""  # the version it was built for, as far as it is known
    lacks: str = ""  # libraries it was built for and does not find


def builds(found: Mapping[str, Package], here: Here, prefix: str = "") -> Iterator[Build]:
    if (torch := found.get("torch")) is not None:
        yield _torch(torch)
    for name in TENSORFLOWS:
        if (tensorflow := found.get(name)) is not None:
            yield _tensorflow(tensorflow, found, here, prefix)
            break
    if (jaxlib := found.get("jaxlib")) is not None and "jax" in found:
        yield _jax(jaxlib, found)


def _torch(package: Package) -> Build:
    """torch/version.py is written by the build. Wheels, conda and NVIDIA's own images differ in all else."""
    said = TORCH_CUDA.search(_source(package.folder / "torch/version.py"))
    if said is None:
        return Build("torch", package.version, False if package.version.endswith("+cpu") else None)
    return Build("torch", package.version, said["version"] is not None, said["version"] or "")


def _tensorflow(package: Package, found: Mapping[str, Package], here: Here, prefix: str) -> Build:
    source = _source(package.folder / "tensorflow/python/platform/build_info.py")
    said, cuda = TENSORFLOW_IS_CUDA.search(source), TENSORFLOW_CUDA.search(source)
    if said is None:
        return Build("tensorflow", package.version, False if package.name == "tensorflow-cpu" else None)
    if said["is"] == "False":
        return Build("tensorflow", package.version, False)
    has_libraries = any(name.startswith("nvidia-cudnn") for name in found) or _has_cudnn(here, prefix)
    lacks = "" if has_libraries else "cuDNN and the other CUDA libraries"
    return Build("tensorflow", package.version, True, cuda["version"] if cuda else "", lacks)


def _jax(jaxlib: Package, found: Mapping[str, Package]) -> Build:
    plugins = [match["version"] for name in found if (match := JAX_PLUGIN.fullmatch(name))]
    old_style = re.search(r"\+cuda(?P<version>\d+)", jaxlib.version)
    cuda = min(plugins, key=int) if plugins else old_style["version"] if old_style else ""
    return Build("jax", found["jax"].version, bool(cuda), cuda)


def _has_cudnn(here: Here, prefix: str) -> bool:
    """Where the loader would find it: its cache, LD_LIBRARY_PATH, an environment's lib."""
    try:
        if b"libcudnn.so" in read(under(here.root, "/etc/ld.so.cache")):
            return True
    except OSError:
        pass
    folders = [*here.environment.get("LD_LIBRARY_PATH", "").split(":"), f"{prefix}/lib" if prefix else ""]
    return any(folder and any(Path(under(here.root, folder)).glob("libcudnn.so*")) for folder in folders)


def _source(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
