"""python -m tests.compatibility [--environments DIR] [--only NAME …] [--write]: what works with which versions.

For each row an environment is built (a virtual environment with the Python and the packages named) and the contract of the
adapters is run in it: a script gives the same result, to the bit, with Holdfast and without; all steps are counted; what
Holdfast says it can do; and a run that is killed with SIGKILL twice ends as if nothing had happened. The script's Python is the
environment's, Holdfast's is this one; where the script calls Holdfast (JAX) it is installed there, too. `--write` puts the rows into
docs/compatibility.md, beside those of environments that were not run this time.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holdfast.inside.seams import ABILITIES
from tests.crash.resume import trial
from tests.inside.contract import SCRIPTS, Ran, run_script

KERAS_ON_JAX = "Keras on JAX, fit"
ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).parents[1] / "docs" / "compatibility.md"
RESULT = ("steps", "epochs", "losses", "batch_shape", "weights")
KERAS = {"fit": ("keras_functional.py", "arrays"), "GradientTape": ("tf_tape_function.py", "compiled")}
TORCH = {"loop": ("torch_plain.py", "plain")}
LIGHTNING = {"Lightning": ("torch_lightning.py", "pl_plain")}
HUGGING_FACE = {"HF Trainer": ("torch_hf_trainer.py", "hf_plain")}
JAX = {
    "holdfast.step, holdfast.keep": ("jax_steps.py", "jax"),
    KERAS_ON_JAX: ("keras_functional.py", "keras_jax_arrays"),
}


@dataclass(frozen=True)
class Environment:
    name: str
    python: str
    packages: tuple[str, ...]
    scripts: dict[
        str, tuple[str, str]
    ]  # what it is; the script of the contract, and the kind that is killed and resumed
    with_holdfast: bool = False  # which the script calls


ENVIRONMENTS = (
    Environment("tensorflow-oldest", "3.9", ("tensorflow-cpu==2.16.2", "keras==3.3.3"), KERAS),
    Environment("tensorflow-usual", "3.11", ("tensorflow-cpu==2.18.1", "keras==3.8.0"), KERAS),
    Environment("tensorflow-newest", "3.13", ("tensorflow-cpu==2.21.0", "keras==3.15.1"), KERAS),
    Environment("tensorflow-3.10", "3.10", ("tensorflow-cpu==2.17.1", "keras==3.10.0"), KERAS),
    Environment(
        "torch-oldest",
        "3.9",
        ("torch==2.1.2", "numpy<2", "lightning==2.1.4", "transformers==4.40.2", "accelerate==0.30.1"),
        {**TORCH, **LIGHTNING, **HUGGING_FACE},
    ),
    Environment(
        "torch-usual",
        "3.11",
        ("torch==2.5.1", "numpy", "lightning==2.4.0", "transformers==4.46.3", "accelerate==1.1.1"),
        {**TORCH, **LIGHTNING, **HUGGING_FACE},
    ),
    Environment(
        "torch-newest",
        "3.13",
        ("torch==2.15.0", "numpy", "lightning==2.6.6", "transformers==5.23.0", "accelerate==1.15.0"),
        {**TORCH, **LIGHTNING, **HUGGING_FACE},
    ),
    Environment("jax-oldest", "3.11", ("jax==0.4.30", "jaxlib==0.4.30", "keras==3.8.0"), JAX, with_holdfast=True),
    Environment("jax-usual", "3.12", ("jax==0.6.2", "keras==3.10.0"), JAX, with_holdfast=True),
    Environment("jax-newest", "3.13", ("jax==0.12.0.1", "keras==3.15.1"), JAX, with_holdfast=True),
)


def find_python(version: str) -> str | None:
    """Among those that pyenv keeps, or on the path."""
    kept = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python"))
    return str(kept[-1]) if kept else shutil.which(f"python{version}")


def build(environment: Environment, place: Path) -> str:
    """The environment's Python; raises CalledProcessError with pip's words where it cannot be built."""
    folder = place / environment.name
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if not (folder / "ready").exists():
        _build(environment, folder, install)
    if environment.with_holdfast:
        subprocess.run([*install, "--no-deps", "-e", str(ROOT)], check=True)
    return str(python)


def _build(environment: Environment, folder: Path, install: list[str]) -> None:
    base = find_python(environment.python)
    if base is None:
        raise FileNotFoundError(f"no Python {environment.python} here")
    subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True)
    subprocess.run([*install, *environment.packages], check=True)
    (folder / "ready").touch()


def judged(what: str, python: str, script: tuple[str, str], place: Path) -> list[str]:
    """Cells of a row: result unchanged, steps counted, each ability, killed and resumed."""
    name, kind = script
    env = {"KERAS_BACKEND": "jax"} if what == KERAS_ON_JAX else {}
    bare = run_script(SCRIPTS / name, place, holdfast=False, python=python, timeout_s=600, env=env)
    if bare.exit_code != 0 or not bare.report:
        return [f"the script does not run: {bare.stderr.strip().splitlines()[-1:]}", *["–"] * (len(ABILITIES) + 2)]
    ran = run_script(SCRIPTS / name, place, python=python, timeout_s=600, env=env)
    changed = [key for key in RESULT if ran.report.get(key) != bare.report.get(key)]
    counted = ran.values("train.steps_count")
    return [
        "same" if ran.exit_code == 0 and not changed else f"differs: {', '.join(changed) or ran.exit_code}",
        "all" if counted and counted[-1] == bare.report["steps"] else f"{counted[-1:]} of {bare.report['steps']}",
        *(_ability(ran, ability) for ability in ABILITIES),
        _killed(kind, python, place) if kind else "–",
    ]


def _ability(ran: Ran, ability: str) -> str:
    """As the adapters told: no where one of them cannot, yes where one of them can."""
    told = [str(event[ability]) for event in ran.told("capabilities")]
    no = [said for said in told if said.startswith("no")]
    return no[0] if no else "yes" if "yes" in told else "–"


def _killed(kind: str, python: str, place: Path) -> str:
    outcome = trial(kind, seed=1, kills=2, aim="saved", place=place, slack_s=5.0, python=python)
    if outcome.problems:
        return "; ".join(outcome.problems)
    return "exact" if outcome.went_on else "nothing is saved, begun anew"


HEADS = ["environment", "versions", "what", "result", "steps", *ABILITIES, "killed twice", "run on"]


def merged(rows: list[list[str]], before: str) -> list[list[str]]:
    """With those on the page of environments that were not run."""
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in before.splitlines() if line[:2] == "| "]
    ran = {row[0] for row in rows}
    kept = [row for row in table if len(row) == len(HEADS) and row[0] not in (*ran, HEADS[0])]
    order = [environment.name for environment in ENVIRONMENTS]
    return sorted([one for one in (*rows, *kept) if one[0] in order], key=lambda row: order.index(row[0]))


def page(rows: list[list[str]]) -> str:
    lines = [
        "# Compatibility",
        "",
        f"Printed by `python -m tests.compatibility --write` ({platform.machine()}, trained on the CPU).",
        "Result: the same to the bit with Holdfast and without. Abilities are what Holdfast says of itself there (`capabilities`",
        "in `holdfast log`); a name that a version does not have switches off what needs it. Killed twice: with SIGKILL, at random,",
        "then left to end; exact: gone on from checkpoints, and weights, data order and history are those of the undisturbed run.",
        "Before Python 3.11 the call that trains must stand alone in its line: `trainer.fit(model, data)`, not `trainer.fit(model, Data())`.",
        "A JAX loop is seen by the calls it makes, `holdfast.step` and `holdfast.keep`, and needs no name of JAX's: nothing is said of it.",
        "",
        f"| {' | '.join(HEADS)} |",
        f"|{'---|' * len(HEADS)}",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.compatibility", description=__doc__)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "holdfast-environments")
    parser.add_argument("--only", nargs="*", default=[env.name for env in ENVIRONMENTS])
    parser.add_argument("--write", action="store_true", help="put the table into docs/compatibility.md")
    options = parser.parse_args()
    options.environments.mkdir(parents=True, exist_ok=True)
    rows: list[list[str]] = []
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    for environment in ENVIRONMENTS:
        if environment.name not in options.only:
            continue
        versions = f"Python {environment.python}, {', '.join(environment.packages)}"
        try:
            python = build(environment, options.environments)
        except (OSError, subprocess.CalledProcessError) as error:
            rows.append([environment.name, versions, "–", f"untested: {error}", *["–"] * (len(ABILITIES) + 2), today])
            continue
        for what, script in environment.scripts.items():
            with tempfile.TemporaryDirectory() as folder:
                rows.append([environment.name, versions, what, *judged(what, python, script, Path(folder)), today])
            print(" | ".join(rows[-1]), flush=True)
    if options.write:
        PAGE.write_text(page(merged(rows, PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
