"""python -m tests.inside.renamed_seams [--only PART] [--jobs N]: each private name that Holdfast uses, renamed in turn.

The framework is the installed one with that one name changed throughout its source, as a next version might have it. The
script must train as it does without Holdfast, to the same bit; what is lost must be said once, with the name; and nothing
may be saved by a part that cannot put it back.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from holdfast.inside.keras import seams as of_keras
from holdfast.inside.seams import ABILITIES, CHECKPOINT, DETAIL, RESUME, Seam
from holdfast.inside.tensorflow import seams as of_tensorflow
from holdfast.inside.torch import seams as of_torch
from tests.inside.contract import SCRIPTS, Ran, run_script

RENAMES = Path(__file__).parent / "renames"
KERAS, LOOP, TORCH = "keras_functional.py", "tf_tape_function.py", "torch_plain.py"
NOT_SIMULATED = "cannot be simulated: without Holdfast the renamed framework does not run"


@dataclass(frozen=True)
class Case:
    seam: Seam
    script: str
    backend: str = "tensorflow"  # of Keras

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(RENAMES), "HOLDFAST_TEST_RENAME": self.rename, "KERAS_BACKEND": self.backend}

    @property
    def rename(self) -> str:
        """An identifier where one is private; else the module moves: public names mostly stay."""
        package, module = self.seam.module.split(".")[0], self.seam.module.split(".")[-1]
        parts = [*self.seam.name.split("."), self.seam.assigned]
        private = [part for part in parts if part.startswith("_") and not part.startswith("__")]
        return f"{package}:{self.seam.inner or (private[-1] if private else f'{module}.py')}"


def cases() -> list[Case]:
    groups = {
        KERAS: (*of_keras.ANY_BACKEND, *of_keras.ON_TENSORFLOW, *of_keras.OF_LOOPS, *of_tensorflow.OF_FIT),
        LOOP: (*of_tensorflow.OF_LOOPS, *of_tensorflow.TO_KEEP_LOOPS),
        TORCH: of_torch.OF_TORCH,
    }
    found: dict[tuple[str, str], Case] = {}
    for script, seams in groups.items():
        for seam in seams:
            case = Case(seam, script)
            found.setdefault((case.rename, script), case)
    return [*found.values(), *(Case(seam, KERAS, "jax") for seam in of_keras.ON_JAX if seam not in of_keras.TO_SAVE)]


def verdict(case: Case, place: Path) -> str:
    """ "ok …", what cannot be simulated, or what is wrong."""
    environment = case.environment
    script = SCRIPTS / case.script
    bare = run_script(script, place, holdfast=False, env=environment)
    if bare.exit_code != 0 or not bare.report:
        return NOT_SIMULATED
    ran = run_script(script, place, env=environment, options=["--checkpoint", "0.1"])
    if not _is_told(case.seam, ran) and _is_there(case, environment):
        return "cannot be simulated: the name is not made by Python source"
    wrong = list(_wrong(case.seam, bare, ran))
    return f"wrong: {'; '.join(wrong)}" if wrong else f"ok: {_lost(ran) or 'nothing is lost'}"


def _wrong(seam: Seam, bare: Ran, ran: Ran) -> Iterator[str]:
    if ran.exit_code != 0 or ran.printed_before_report != bare.printed_before_report:
        yield f"exit {ran.exit_code}, another output: {ran.stderr[-300:]}"
    changed = [key for key, value in bare.report.items() if key != "wait_share" and ran.report.get(key) != value]
    if changed:
        yield f"training changed: {', '.join(changed)}"
    if not _is_told(seam, ran):
        yield "the name is not told as missing"
    lines = [line for line in ran.stderr.splitlines() if "Holdfast cannot" in line]
    loses = [ability for ability in seam.serves if ability in ABILITIES and ability in _asked(ran)]
    if len(lines) != (1 if loses else 0):
        yield f"{len(lines)} lines said, lost: {', '.join(loses) or 'nothing'}"
    if {CHECKPOINT, RESUME} & set(seam.serves) and ran.told("checkpoint.saved"):
        yield "a checkpoint was saved"
    for failed in ran.told("inside.failed"):
        yield f"{failed['place']}: {failed['reason']}"


def _is_told(seam: Seam, ran: Ran) -> bool:
    return str(seam) in [name for event in ran.told("capabilities") for name in event["missing"]]


def _is_there(case: Case, environment: dict[str, str]) -> bool:
    """In the renamed framework, as the adapter looks for it."""
    package = "keras" if case.script == KERAS else case.seam.module.split(".")[0]
    look = f"import {package}\nfrom holdfast.inside.seams import Seam\n"
    look += f"print(Seam(*{tuple(case.seam)!r}).is_there())"
    done = subprocess.run(
        [sys.executable, "-c", look], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done.stdout.strip().endswith("True")


def _asked(ran: Ran) -> set[str]:
    return {ability for event in ran.told("capabilities") for ability in ABILITIES if event[ability] != "off"}


def _lost(ran: Ran) -> str:
    found = [
        ability for event in ran.told("capabilities") for ability in ABILITIES if str(event[ability]).startswith("no: ")
    ]
    return f"no {', no '.join(found)}" if found else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.inside.renamed_seams", description=__doc__)
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    todo = [case for case in cases() if options.only in f"{case.seam} {case.rename} {case.script} {case.backend}"]
    bad = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:

        def judged(numbered: tuple[int, Case]) -> str:
            place = Path(folder) / str(numbered[0])
            place.mkdir()
            return verdict(numbered[1], place)

        for case, said in zip(todo, pool.map(judged, enumerate(todo)), strict=True):
            bad += said.startswith("wrong")
            serves = ", ".join(one for one in case.seam.serves if one != DETAIL) or "a detail"
            print(f"{case.seam!s:100} {serves:40} {said}", flush=True)
    print(f"{len(todo)} names, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
