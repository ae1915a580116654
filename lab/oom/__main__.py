"""The tables of rescues, as they were measured. Each row is a process of its own; one that fails is a row that says so.

    python -m lab.oom [MODEL …]              a budget of 60, 35 and 20 % of what the step needs (`--memory`), and the most
                                             that the process held of it
    python -m lab.oom --container [MODEL …]  the same in a container and without any option
    python -m lab.oom --healthy [MODEL …]    batches that do fit, in a container filled to 90-95 %: nothing changes
    python -m lab.oom --state [--only NAME]  models of 40 to 400 MB in a container with room for an eighth of the batch
    python -m lab.oom --repeat 20 dense 35   one case of the container's table 20 times: how often it was restarted
    python -m lab.oom --on cuda              a GPU capped at 8 and 2 GiB
    python -m lab.oom --on tensorflow        TensorFlow on a GPU that is too small; --list names the cases, --only one

The step's memory is what it holds at most, above what the process held before its first step. With `--write FILE` the
table also replaces the one in that file, between its two marks.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.oom import on_gpu, on_tensorflow_gpu, repeat, state, table
from lab.oom.repeat import HOLDFAST_BYTES
from lab.oom.runs import PLENTY, Run, apart, same_bits, train

MODELS = ("dense", "dense-weighted", "dense-mixed", "batch-norm", "cnn", "lstm", "transformer", "own-step")
# A step of more than a GiB: cutting it needs about 100 MiB of its own, for a second traced graph.
TIMES = {"transformer": 8, "cnn": 10, "lstm": 12, "batch-norm": 8, "dense-mixed": 20}
USUAL_TIMES = 14
HEALTHY_FILL = 0.93
OVER_BUDGET = 1.05  # that a process is seen at, at most
MIB = 1 << 20


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("models", nargs="*", default=list(MODELS))
    words.add_argument("--shares", nargs="+", type=int, default=[60, 35, 20])
    words.add_argument("--container", action="store_true")
    words.add_argument("--healthy", action="store_true")
    words.add_argument("--state", action="store_true")
    words.add_argument("--repeat", type=int, metavar="TURNS", help="of MODEL with SHARE per cent of its step's memory")
    words.add_argument("--only", action="extend", nargs="+", default=[], metavar="NAME", help="of the table's rows")
    words.add_argument("--on", choices=("cpu", "cuda", "tensorflow"), default="cpu")
    words.add_argument("--list", action="store_true", help="the cases of --on tensorflow, and nothing is run")
    words.add_argument("--jobs", type=int, default=6, help="cases of --on tensorflow at a time (default: %(default)s)")
    words.add_argument(
        "--within", type=float, default=on_tensorflow_gpu.WITHIN_S, metavar="S",
        help="seconds for all cases of --on tensorflow; what is not begun by then is a row that says so (default: %(default).0f)",
    )  # fmt: skip
    words.add_argument("--write", type=Path)
    asked = words.parse_args()
    if asked.list:
        print(on_tensorflow_gpu.listed())
        return 0
    if asked.on == "tensorflow" and (unable := on_tensorflow_gpu.why_not(asked.only)):
        print(unable, file=sys.stderr)
        return 2
    made, rows = _asked_for(asked)
    bad = made.fill(rows)
    if asked.write:
        made.write(asked.write)
    return 1 if bad else 0


def _asked_for(asked: argparse.Namespace) -> tuple[table.Table, Iterator[table.Row]]:
    if asked.on == "cuda":
        return table.Table("on a GPU", on_gpu.HEADINGS), on_gpu.rows()
    if asked.on == "tensorflow":
        made = table.Table("TensorFlow on a GPU", on_tensorflow_gpu.HEADINGS, named_by=1)
        return made, on_tensorflow_gpu.rows(asked.only, asked.jobs, asked.within)
    if asked.state:
        return table.Table("state", state.HEADINGS, named_by=1), state.rows(asked.only)
    if asked.repeat:
        model, share = asked.models
        rows = repeat.rows(model, int(share), asked.repeat, TIMES.get(model, USUAL_TIMES))
        return table.Table("repeated", repeat.HEADINGS), rows
    if asked.healthy:
        headings = ("model", "container", "filled", "exit", "bits", "touched", "time")
        return table.Table("healthy", headings, named_by=1), _each(asked.models, healthy)
    columns = ("exit", "how", "k", "why", "apart")
    if asked.container:
        made = table.Table("container", ("model", "memory", "step", "container", *columns))
        return made, _each(asked.models, lambda model, place: in_container(model, place, asked.shares))
    made = table.Table("budget", ("model", "memory", "step", "budget", *columns, "peak / budget"))
    return made, _each(asked.models, lambda model, place: with_budget(model, place, asked.shares))


def _each(models: list[str], rows: Callable[[str, Path], Iterator[table.Row]]) -> Iterator[table.Row]:
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            yield from rows(model, Path(folder))


def with_budget(model: str, place: Path, shares: list[int]) -> Iterator[table.Row]:
    times = TIMES.get(model, USUAL_TIMES)
    whole = train(place, model, times, measure=True)
    seen = [json.loads(line[4:]) for line in whole.output.splitlines() if line.startswith("LAB ")]
    held, needed = seen[0]["held"], max(one["peak"] for one in seen[1:]) - seen[0]["current"]
    for share in shares:
        budget = held + int(needed * share / 100)
        run = train(place, model, times, options=("--memory", str(budget // MIB) + "M"))
        row, over = _rescued(model, (share, needed, budget), whole, run), run.held_at_most() / budget
        yield table.Row(row.good and over <= OVER_BUDGET, (*row.cells, f"{over:.0%}" if over else "-"))


def in_container(model: str, place: Path, shares: list[int]) -> Iterator[table.Row]:
    times = TIMES.get(model, USUAL_TIMES)
    whole = train(place, model, times, container=PLENTY, measure=True)
    for share in shares:
        needed, limit = repeat.container_for(whole, share)
        run = train(place, model, times, container=limit, options=())
        yield _rescued(model, (share, needed, limit), whole, run)


def _rescued(model: str, sizes: tuple[int, int, int], whole: Run, run: Run) -> table.Row:
    share, needed, size = sizes
    good = run.exit == 0 and run.outcome == "recovered"
    verdict = f"{run.outcome}, {run.cause}"
    return table.Row(
        good,
        (
            model,
            f"{share} %",
            f"{needed // MIB} MiB",
            f"{size // MIB} MiB",
            str(run.exit),
            run.how,
            str(run.k),
            verdict,
            apart(whole, run),
        ),
    )


def healthy(model: str, place: Path) -> Iterator[table.Row]:
    """The container is made as small as the program alone bears; then there is room for Holdfast's own processes."""
    times = TIMES.get(model, USUAL_TIMES)
    free = train(place, model, times, container=PLENTY)
    limit = int((free.peak or 0) / HEALTHY_FILL)
    for _ in range(4):  # what a program takes differs from run to run
        bare = train(place, model, times, container=limit)
        if bare.exit == 0:
            break
        limit = int(limit * 1.05)
    run = train(place, model, times, container=limit + HOLDFAST_BYTES, options=())
    touched = sorted({kind for kind, _ in run.events if kind.startswith(("rescue.", "inside.failed", "attempt."))})
    itself = same_bits(free, bare)  # some programs are not the same twice, whoever watches
    same = run.exit == 0 and (same_bits(bare, run) or not itself)
    bits = "other" if not same else "same" if itself else "not twice the same"
    filled = f"{(run.peak or 0) / (limit + HOLDFAST_BYTES):.0%}"
    time = f"{run.seconds() / bare.seconds():.2f}" if run.exit == 0 else "-"
    yield table.Row(
        same and not touched,
        (
            model,
            f"{limit // MIB} MiB",
            filled,
            str(run.exit),
            bits,
            ", ".join(touched) or "no",
            time,
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
