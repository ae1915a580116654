"""Installed frameworks against the GPU and against each other, without importing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.checks.contract import Here, Line, ok, warn
from holdfast.checks.gpu import lacks_runtime, seen_cards
from holdfast.checks.gpu_builds import Build, builds
from holdfast.checks.installed import NoAnswer, ask, packages
from holdfast.checks.requirements import unmet
from holdfast.probes import Missing
from holdfast.probes.gpu import NoSession, expect_driver, open_session


def look(here: Here) -> Iterator[Line]:
    try:
        interpreter = ask(here)
    except NoAnswer as reason:
        yield warn("frameworks", str(reason), "name the Python that runs the script: holdfast check --python PATH")
        return
    found = packages(interpreter.path)
    built = list(builds(found, here, interpreter.prefix))
    if not built:
        text = f"neither PyTorch nor TensorFlow nor JAX is installed for {here.python}"
        yield warn("frameworks", text, "name the Python that runs the script: holdfast check --python PATH")
        return
    driver = driver_cuda(here)
    yield from against_gpu(built, driver)
    yield from unmet(found, interpreter.markers)


def driver_cuda(here: Here) -> int | None:
    """The newest CUDA that the driver can run, times 1000, as it counts (12080); None where no card is to be seen."""
    here.asked("the NVIDIA driver")
    try:
        expect_driver(here.root)
        if lacks_runtime(here):
            return None
        session = open_session()
    except (Missing, NoSession):
        return None
    try:
        if not seen_cards(here.environment, session):
            return None
        return int(session.nvml.nvmlSystemGetCudaDriverVersion_v2())
    except session.nvml.NVMLError:
        return 0  # a card, and not known which CUDA
    finally:
        session.nvml.nvmlShutdown()


def against_gpu(built: Sequence[Build], driver: int | None) -> Iterator[Line]:
    """Where one of several frameworks can use the card the others may be there for something else."""
    names = ", ".join(f"{build.framework} {build.version}{_kind(build)}" for build in built)
    if driver is None:
        yield ok("frameworks", names)
        return
    useless = {build.framework: why for build in built if (why := _cannot_use(build, driver))}
    usable = [build for build in built if build.framework not in useless]
    for framework, (text, fix) in useless.items():
        yield Line(f"{framework}-gpu", "warn" if usable else "bad", text, fix)
    if usable:
        yield ok("frameworks", names)


def _kind(build: Build) -> str:
    if build.gpu is None:
        return ""
    return f" (CUDA {build.cuda})" if build.gpu and build.cuda else " (GPU build)" if build.gpu else " (CPU build)"


def _cannot_use(build: Build, driver: int) -> tuple[str, str] | None:
    """What is wrong, and the fix; None where the card can be used, as far as can be seen from here."""
    name = f"{build.framework} {build.version}"
    if build.gpu is False:
        return f"{name} is a build for the CPU, and a GPU is here: it will not be used", _install(build, driver)
    major = int(build.cuda.split(".")[0]) if build.cuda else 0
    if driver and major > driver // 1000:  # within a major version newer builds run on older drivers
        text = f"{name} is built for CUDA {build.cuda}, and the driver here runs CUDA {driver // 1000}.{driver % 1000 // 10} at most"
        return text, f"update NVIDIA's driver, or: {_install(build, driver)}"
    if build.lacks:
        return f"{name} does not find {build.lacks}: the GPU will not be used", _install(build, driver)
    return None


def _install(build: Build, driver: int) -> str:
    major = max(12, driver // 1000) if driver else 12
    if build.framework == "torch":
        index = "cu130" if major > 12 else "cu126"
        return f"pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/{index}"
    if build.framework == "tensorflow":
        return "pip uninstall -y tensorflow-cpu; pip install 'tensorflow[and-cuda]'"
    return f"pip install -U 'jax[cuda{min(13, major)}]'"
