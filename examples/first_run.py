"""Shows the main job: a training that dies of memory by itself, and finishes under Holdfast. `python -m examples.first_run`

The limit is a control group of its own (version 1 or 2) around the training alone, so the machine is never short of memory.
Where none may be made, the training that would be killed is not run, and Holdfast gets the same limit by `--memory`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from lab.case import Limits
from lab.stage import CannotStage, Stage

_BELOW = Path(sys.executable).is_relative_to(Path.cwd())  # as one types it
PYTHON = os.path.relpath(sys.executable) if _BELOW else sys.executable
SCRIPT = [PYTHON, os.path.relpath(Path(__file__).with_name("train_big_batch.py"))]
HOLDFAST = [sys.executable, "-m", "holdfast"]
LIMIT_MIB = 1024  # the training takes 1350 MiB with TensorFlow 2.21 for the CPU
PATIENCE_S = 300.0
ENDING_S = 10.0  # for Holdfast to pass a Ctrl-C on and to close its record


def main() -> int:
    missing = [name for name in ("holdfast", "tensorflow", "keras") if importlib.util.find_spec(name) is None]
    if missing:
        say(f"{', '.join(missing)} not installed for {sys.executable}; run: bash examples/first_run.sh")
        return 2
    try:
        with Stage(Limits(memory=LIMIT_MIB << 20), f"holdfast-first-run-{os.getpid()}") as stage:
            try:
                return in_container(stage)
            finally:
                end_all(stage.members())
    except CannotStage as reason:
        return with_budget(str(reason))
    except KeyboardInterrupt:
        say("stopped; nothing is left running")
        return 130


def in_container(stage: Stage) -> int:
    say(f"1 of 3: the training by itself, in a container with {LIMIT_MIB} MiB of memory\n  $ {' '.join(SCRIPT)}")
    code = run(stage.wrap(SCRIPT))
    if code != -signal.SIGKILL:
        say(
            f"it was expected to be killed for memory, but ended with exit code {code}: nothing to show on this machine"
        )
        return 1
    print("Killed")
    say("that was the kernel: no error, no traceback, no weights")
    say(f"2 of 3: the same command in the same container, under Holdfast\n  $ holdfast run {' '.join(SCRIPT)}")
    return explained(run(stage.wrap([*HOLDFAST, "run", *SCRIPT])))


def with_budget(reason: str) -> int:
    say(f"{reason}, so the training is not run by itself")
    say(
        f"1 of 3: in a container of {LIMIT_MIB} MiB the kernel would kill it in its first step, with no word but `Killed`"
    )
    options = ["--memory", f"{LIMIT_MIB}M"]
    say(f"2 of 3: under Holdfast, with that much memory\n  $ holdfast run {' '.join([*options, *SCRIPT])}")
    return explained(run([*HOLDFAST, "run", *options, *SCRIPT]))


def explained(code: int) -> int:
    say(f"it ended with exit code {code}")
    say("3 of 3: what happened\n  $ holdfast why")
    run([*HOLDFAST, "why"])
    return code


def run(command: list[str]) -> int:
    """Its exit code. Ctrl-C reaches it too, as it is in our terminal's group: it gets a moment to end by itself."""
    process = subprocess.Popen(command, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        say(f"stopped: it took more than {PATIENCE_S:.0f} s")
        process.terminate()
        return process.wait()
    except KeyboardInterrupt:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_S)
        process.kill()
        raise


def end_all(pids: list[int]) -> None:
    """What is still in the container, which can be removed only once it is empty."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def say(text: str) -> None:
    print(f"first_run: {text}", flush=True)


if __name__ == "__main__":
    began = time.monotonic()
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
    if not code:
        say(f"done in {time.monotonic() - began:.0f} s; put `holdfast run` in front of a training of your own")
    sys.exit(code)
