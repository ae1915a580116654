"""Imports each framework in a process of the target Python and asks it which GPUs it sees: only on request, it takes seconds."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator

from holdfast.checks.contract import Here, Line, bad, ok, warn
from holdfast.checks.frameworks import driver_cuda
from holdfast.checks.gpu_builds import builds
from holdfast.checks.installed import NoAnswer, ask, packages

PATIENCE_S = 120.0  # from a network file system an import can take a minute
SEES = {
    "torch": "import torch; seen = torch.cuda.device_count() if torch.cuda.is_available() else 0",
    "tensorflow": "import tensorflow as tf; seen = len(tf.config.list_physical_devices('GPU'))",
    "jax": "import jax; seen = sum(device.platform != 'cpu' for device in jax.devices())",
}


def imported(here: Here, say: Callable[[str], None]) -> Iterator[Line]:
    try:
        interpreter = ask(here)
    except NoAnswer:
        return  # the check of frameworks has said so
    here.asked("the frameworks")
    expects_gpu = driver_cuda(here) is not None
    for build in builds(packages(interpreter.path), here, interpreter.prefix):
        say(f"importing {build.framework} {build.version} …")
        yield _import(here, build.framework, expects_gpu)


def _import(here: Here, framework: str, expects_gpu: bool) -> Line:
    id, began = f"{framework}-import", time.monotonic()
    try:
        done = subprocess.run(
            [here.python, "-c", f"{SEES[framework]}; import json; print(json.dumps(seen))"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False,
            env=dict(here.environment), cwd="/",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        text = f"{framework} was not imported after {PATIENCE_S:g} s"
        return bad(id, text, "is it on a slow file system? copy the environment to a local disk")
    took_s = time.monotonic() - began
    said = done.stderr.strip().splitlines()
    if done.returncode != 0:
        why = said[-1] if said else f"exit status {done.returncode}"
        return bad(
            id,
            f"{framework} cannot be imported: {why}",
            f"`holdfast why` explains it: {here.python} -c 'import {framework}' 2>&1 | holdfast why -",
        )
    seen = int(json.loads(done.stdout.strip().splitlines()[-1]))
    text = f"{framework} is imported in {took_s:.1f} s and sees {seen} GPU{'' if seen == 1 else 's'}"
    if expects_gpu and not seen:
        return bad(
            id, f"{text}; the driver has one", f"{here.python} -c 'import {framework}' says why, on standard error"
        )
    return ok(id, text) if took_s < PATIENCE_S / 4 else warn(id, text, "copy the environment to a local disk")
