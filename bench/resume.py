"""What a checkpoint costs, and what a kill costs: beside Keras's BackupAndRestore and, where it is installed, Orbax.

`pause` is how long training stands still for one save, `share` what all of them took of the run; Holdfast sets its own
pace, the others save as often as it did. `useful` is the part of all steps made, over some lives ended by kill -9, that
the last state stands on.

python -m bench.resume [--seconds 60] [--every 60] [--lives 4] [--megabytes 15 100]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.holdfast_command import program
from holdfast.inside import checkpoint_store
from tests.inside.attempts import Run

EPOCH_S = 20.0  # BackupAndRestore goes back to an epoch's begin: how long one is


def pause(megabytes: float, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Run(
            Path(folder) / "ours", [program("keras_state.py"), str(megabytes), str(seconds), "nothing", "0"], None
        )
        attempt = run.start()
        attempt.finish(20 * seconds + 120)
        report = attempt.report()
        saved = [event for event in attempt.events("checkpoint.saved") if event["paused_s"] is not None]
        pauses = [float(event["paused_s"]) for event in saved]
        _tell("Holdfast", megabytes, pauses, report["seconds"], f"{saved[-1]['bytes'] / 1e6:.1f} MB")
        every = max(1.0, report["seconds"] / max(1, len(saved)))
        for name, way in (("BackupAndRestore", "backup"), ("Orbax", "orbax")):
            if way == "orbax" and find_spec("orbax") is None:
                print("Orbax is not installed here", flush=True)
                continue
            words = [program("keras_state.py"), str(megabytes), str(seconds), way, str(every)]
            theirs = Run(Path(folder) / way, words).bare().report()
            _tell(name, megabytes, theirs["pauses"], theirs["seconds"], f"every {every:.1f} s")


def _tell(name: str, megabytes: float, pauses: list[float], seconds: float, note: str) -> None:
    share = sum(pauses) / seconds
    print(
        f"{name:17} {megabytes:5.0f} MB of state ({note}): pause {1e3 * median(pauses):8.2f} ms (longest "
        f"{1e3 * max(pauses):.1f}), {len(pauses)} saves in {seconds:.0f} s, share {share:.4%}",
        flush=True,
    )


def goodput(megabytes: float, every: float, lives: int, seed: int = 0) -> None:
    """The same script, killed at the same instants."""
    for name, way in (("Holdfast", "nothing"), ("BackupAndRestore", "backup")):
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            steps_per_epoch = _steps_in(EPOCH_S, megabytes, Path(folder) / "measure")
            words = [program("keras_state.py"), str(megabytes), str(every), way, "0", str(steps_per_epoch)]
            run = Run(Path(folder) / "run", words, None)
            reached = 0
            for life in range(lives):
                last = life == lives - 1
                lasting = {"SECONDS_TO_TRAIN": str(every if last else 10**6)}
                attempt = run.start(**lasting) if way == "nothing" else run.unwatched(**lasting)
                if last:
                    attempt.finish(20 * every + 120)
                    reached = int(attempt.report()["iterations"])
                else:
                    _live(run, chance.uniform(0.7, 1.3) * every)
                    attempt.kill()
            made = (run.place / "steps").stat().st_size
            kept = (
                "" if way == "backup" else f", {len(checkpoint_store.numbers(str(run.checkpoints)))} checkpoints kept"
            )
            print(
                f"{name:17} {megabytes:5.0f} MB, killed about every {every:.0f} s, {lives - 1} times: "
                f"{reached / made:.2%} of {made} steps useful{kept}",
                flush=True,
            )


def _steps_in(seconds: float, megabytes: float, place: Path) -> int:
    words = [program("keras_state.py"), str(megabytes), "4", "nothing", "0"]
    report = Run(place, words).bare().report()
    return max(10, int(report["steps"] / report["seconds"] * seconds))


def _live(run: Run, seconds: float) -> None:
    """So long in training, not in starting up."""
    log = run.place / "steps"
    before = log.stat().st_size if log.exists() else 0
    until = time.monotonic() + 120
    while (not log.exists() or log.stat().st_size == before) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of training for the pause")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between kills")
    parser.add_argument("--lives", type=int, default=4)
    parser.add_argument("--megabytes", type=float, nargs="*", default=[15.0, 100.0])
    options = parser.parse_args()
    for megabytes in options.megabytes:
        pause(megabytes, options.seconds)
    for megabytes in options.megabytes:
        goodput(megabytes, options.every, options.lives)
    return 0


if __name__ == "__main__":
    sys.exit(main())
