"""`holdfast plan` against the truth: predicted and measured peaks, and the largest batch under a limit.

    python -m bench.plan [--only torch] [--kinds dense,cnn] [--jobs 2]      predicted against measured peaks
    python -m bench.plan --summary FILE…                                    of lines that were printed before
    python -m bench.plan --largest                                          the largest batch, as root with cgroups version 1

A prediction is that of one `plan` of a script at its own batch; the truth is the same script in a process of its own, ten steps at
batches that were not measured for the prediction. The error is that of the whole peak of the process (anonymous and shared
memory, without mapped files); beside it stands the error of what a step adds to the imported framework.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.cli.plan_process import CannotPlan, Measuring, measure

SCRIPT = Path(__file__).parent / "programs" / "plan_models.py"
OWN = {"dense": 512, "cnn": 64, "unet": 16, "lstm": 64, "transformer": 32, "embedding": 256}
FACTORS = (1.5, 3.0)  # of the script's own batch; probes are its halves and doubles
STEPS = 10
SECONDS = 30.0  # three times the default: the machine is shared
MIB = 1 << 20
PRINTED = re.compile(
    r"plan peak: (?P<model>\w+ \w+ \w+ \w+) +batch +(?P<batch>\d+) \((?P<where>\w+)\): predicted +(?P<predicted>\d+) MiB, "
    r"measured +(?P<measured>\d+) MiB, error +(?P<error>[+-][\d.]+) %, of the step's part +(?P<step>[+-][\d.]+) %"
)


class Model(NamedTuple):
    framework: str
    kind: str
    optimizer: str
    precision: str

    def command(self, batch: int, steps: int | None = None) -> tuple[str, ...]:
        words = (sys.executable, str(SCRIPT), *self, str(batch))
        return words if steps is None else (*words, str(steps))


class Row(NamedTuple):
    model: Model
    batch: int
    predicted: float
    truth: int
    framework_bytes: int
    beyond: bool  # the largest that was measured

    @property
    def error(self) -> float:
        return (self.predicted - self.truth) / self.truth

    @property
    def step_error(self) -> float:
        return (self.predicted - self.truth) / max(1, self.truth - self.framework_bytes)


def models() -> list[Model]:
    plain = [Model(f, k, o, "float32") for f in ("torch", "keras") for k in OWN for o in ("adam", "sgd")]
    mixed = [Model(f, k, "adam", "mixed") for f in ("torch", "keras") for k in ("dense", "transformer")]
    return plain + mixed


def compared(model: Model) -> list[Row]:
    own = OWN[model.kind]
    wanted = Measuring(model.command(own), Path.cwd(), None, SECONDS, 600.0, room_bytes=6 << 30)
    try:
        found = measure(wanted, lambda _text: None).measured
    except CannotPlan as reason:
        print(f"{' '.join(model)}: no plan: {reason}", flush=True)
        return []
    used = {point.rows for point in found.points}
    rows = []
    for batch in (int(own * factor) for factor in FACTORS):
        assert batch not in used
        predicted = found.host().at(batch)
        rows.append(Row(model, batch, predicted, truth(model, batch), found.framework_bytes, batch > found.last.rows))
        print(line_of(rows[-1]), flush=True)
    return rows


def truth(model: Model, batch: int) -> int:
    told = subprocess.run(model.command(batch, STEPS), capture_output=True, text=True, check=True).stdout
    return int(json.loads(told.splitlines()[-1])["peak_bytes"])


def line_of(row: Row) -> str:
    where = "beyond" if row.beyond else "within"
    return (
        f"plan peak: {' '.join(row.model):<34} batch {row.batch:>5} ({where}): predicted {row.predicted / MIB:7.0f} MiB, "
        f"measured {row.truth / MIB:7.0f} MiB, error {100 * row.error:+6.1f} %, of the step's part {100 * row.step_error:+6.1f} %"
    )


def summary(rows: list[Row], of: str) -> str:
    errors = sorted(abs(row.error) for row in rows)
    p95 = errors[min(len(errors) - 1, int(0.95 * len(errors)))]
    return (
        f"plan errors, {of}: {len({row.model for row in rows})} models, {len(rows)} batches: median "
        f"{100 * statistics.median(errors):.1f} %, 95th percentile {100 * p95:.1f} %, most below the truth "
        f"{100 * min(0.0, *(row.error for row in rows)):.1f} %, most above {100 * max(0.0, *(row.error for row in rows)):.1f} %, "
        f"of the step's part: median {100 * statistics.median(abs(row.step_error) for row in rows):.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("torch", "keras"))
    parser.add_argument("--kinds", default=",".join(OWN))
    parser.add_argument("--precision", default="float32,mixed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--summary", nargs="+", type=Path)
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--without-brute-force", action="store_true", help="which takes minutes")
    options = parser.parse_args()
    if options.summary:
        tell([row for path in options.summary for row in read(path)])
        return
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.uname().release}, {os.cpu_count()} cores, CPU only", flush=True)
    if options.largest:
        from bench.plan_largest import main as largest  # noqa: PLC0415

        largest(options.without_brute_force, options.only)
        return
    chosen = [m for m in models() if options.only in (None, m.framework) and m.kind in options.kinds.split(",")]
    chosen = [m for m in chosen if m.precision in options.precision.split(",")]
    with ThreadPoolExecutor(options.jobs) as pool:
        tell([row for found in pool.map(compared, chosen) for row in found])


def read(path: Path) -> list[Row]:
    """What `line_of` wrote, as far as a summary needs it."""
    rows = []
    for found in PRINTED.finditer(path.read_text()):
        predicted, truth, error, of_step = (float(found[name]) for name in ("predicted", "measured", "error", "step"))
        part = truth * error / of_step if of_step else truth
        model, beyond = Model(*found["model"].split()), found["where"] == "beyond"
        rows.append(
            Row(model, int(found["batch"]), predicted * MIB, int(truth * MIB), int((truth - part) * MIB), beyond)
        )
    return rows


def tell(rows: list[Row]) -> None:
    for framework in ("torch", "keras"):
        of_one: list[Any] = [row for row in rows if row.model.framework == framework]
        if of_one:
            print(summary(of_one, framework))
    print(summary(rows, "all"))


if __name__ == "__main__":
    main()
