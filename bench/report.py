"""Writes docs/measured.md from the dated outputs of the measuring commands: `python -m bench.report`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bench.report_figures import BENCH, CRASH, FIGURES, RATIO, Figure

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/measured.md"
HEAD = """# Measured

Made by `python -m bench.report` from the dated outputs of the commands that measure; not edited by hand. A figure is the latest
one in those files, and says what the machine was then: nothing here is re-measured for each change. A ratio is the median of
paired rounds, with the middle half of them in brackets; 1 is the same as without Holdfast.
"""
TESTED = """## What was tested where

- Keras on TensorFlow and PyTorch on the CPU under cgroup version 1 (Linux 6.18), and under version 2 beside one NVIDIA H200, on
  which PyTorch, Keras on PyTorch, both trainers and Keras on TensorFlow ran (`tests/gpu/`, `lab/oom/`). A batch
  larger than the whole card was not seen to finish there, and hangs were not tried on a GPU.
- The guard in versions 1 and 2 with the whole of `tests/guard/`, and with a real systemd in version 2. `bench.freeze` needs version 1.
- The machine's own memory was never exhausted for a test: that ending, and a machine that went down, are tested from recorded
  evidence. Xid errors and a lost GPU are tested with a stand-in for the driver.
- Several ranks with gloo on one machine, two and four of them, under torchrun, two of Ray Train and of `tf.distribute`; Slurm and
  Kubernetes by their variables only.
- Several machines, AMD and Intel GPUs, TPUs: not at all.
- The laboratory's programs are the ones Holdfast was built with; twelve have been added since the run above.
"""


class NotMeasured(Exception):
    """No result has this figure."""


def outputs(folder: str) -> list[Path]:
    """Oldest first: a day's plain file came before those with a word after the date."""
    return sorted((ROOT / folder).glob("*.txt"), key=lambda path: (path.stem[:10], path.stem[10:]))


def latest(figure: Figure) -> tuple[re.Match[str], Path]:
    for path in reversed(outputs(figure.folder)):
        found = list(re.finditer(figure.pattern, path.read_text()))
        if found:
            return found[-1], path
    raise NotMeasured(f"{figure.what}: no file in {figure.folder} has {figure.pattern}")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def single_figures() -> str:
    rows = []
    for figure in FIGURES:
        match, path = latest(figure)
        values = match.groupdict()
        source = f"`{path.relative_to(ROOT)}`"
        rows.append((figure.what.format(**values), figure.told.format(**values), source))
    return "## Figures\n\n" + table(("what", "figure", "from"), rows)


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Each line with the last line above it that says under which conditions it was measured."""
    about = ""
    for line in text.splitlines():
        if re.match(r"step of ", line):
            yield about, line
        elif line:
            about = line.rstrip(":")


def steps() -> str:
    rows = []
    step = re.compile(r"step of (?P<of>.+?), ms: bare (?P<bare>[\d.]+), with Holdfast (?P<ours>[\d.]+), " + RATIO)
    paths = sorted((path for path in outputs(BENCH) if "overhead" in path.name), reverse=True)
    for path in paths:
        for about, line in sections(path.read_text()):
            if match := step.match(line):
                found = match.groupdict()
                ratio = f"{found['ratio']} ({found['low']} to {found['high']}, {found['rounds']} rounds)"
                rows.append((found["of"], f"{found['bare']} ms", ratio, about))
    if not rows:
        raise NotMeasured("no step in the results of bench.overhead")
    files = ", ".join(f"`{path.relative_to(ROOT)}`" for path in paths)
    return f"## What a step costs ({files})\n\n" + table(("step", "bare", "with Holdfast, ratio", "conditions"), rows)


FREEZE = re.compile(r"(leak|fast) +(none|file|slow) +(\w+) +(\d+) ms +\d+ ms +(\w+) +code +-?\d+ +([\d.]+) s")
GUARDS = {
    "bare": "bare",
    "earlyoom": "earlyoom",
    "nohang": "nohang",
    "cgroup": "Holdfast with a group",
    "root": "Holdfast, root",
    "user": "Holdfast, plain user",
}


def freeze() -> str:
    path = max(path for path in outputs(BENCH) if "freeze" in path.name)
    text = path.read_text()
    found: defaultdict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for job, swap, guard, worst, _, lost in FREEZE.findall(text):
        found[job, swap, guard].append((float(worst), float(lost)))
    if not found:
        raise NotMeasured(f"{path}: no row")
    rows = []
    for job, swap in dict.fromkeys((job, swap) for job, swap, _ in found):
        cells = [_range(found.get((job, swap, guard), [])) for guard in GUARDS]
        rows.append((f"{job}, swap {swap}", *cells))
    title = (
        f"## A neighbour's worst wait, and work lost, while a job runs out of memory (`{path.relative_to(ROOT)}`)\n\n"
    )
    return title + _conditions(text) + table(("job", *GUARDS.values()), rows)


def _range(samples: list[tuple[float, float]]) -> str:
    if not samples:
        return "not run"
    waits, losses = zip(*samples, strict=True)
    return f"{_span(waits, '.0f')} ms, {_span(losses, '.1f')} s lost"


def _span(values: tuple[float, ...], digits: str) -> str:
    low, high = format(min(values), digits), format(max(values), digits)
    return low if low == high else f"{low} to {high}"


def _conditions(text: str) -> str:
    return text.partition("\n\n")[0] + "\n\n"


def out_of_memory() -> str:
    path = max(path for path in outputs(BENCH) if "-oom" in path.name)
    text = path.read_text()
    found: defaultdict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for cap, who, facts in re.findall(r"(\d+)\.0 GiB, ([\w ]+): (\{.*\})", text):
        told = ast.literal_eval(facts)
        found[cap, who].append((float(told["first_s"]), int(told["rows_per_step"])))
    for cap, who, seconds, rows in re.findall(r"(\d+) GiB  ([\w ]+?) +([\d.]+) s until .*?, (\d+) rows", text):
        found[cap, who].append((float(seconds), int(rows)))
    if not found:
        raise NotMeasured(f"{path}: no row")
    rows = [
        (f"{cap} GiB", who, f"{_span(tuple(s for s, _ in of), '.1f')} s", str(of[0][1]))
        for (cap, who), of in found.items()
    ]
    title = f"## Out of memory on a GPU, until a step was finished (`{path.relative_to(ROOT)}`)\n\n"
    return title + _conditions(text) + table(("cap", "by", "seconds", "rows a step"), rows)


def checkpoints() -> str:
    path = max(path for path in outputs(BENCH) if "resume" in path.name)
    text = path.read_text()
    line = re.compile(r"^(\w+) +(\d+ MB[^:]*): (pause .*|.* useful.*)$", re.MULTILINE)
    rows = [(who, size, re.sub(r"\s+", " ", told)) for who, size, told in line.findall(text)]
    if not rows:
        raise NotMeasured(f"{path}: no row")
    about = text[: line.search(text).start()].strip()  # type: ignore[union-attr]
    title = f"## Checkpoints (`{path.relative_to(ROOT)}`)\n\n"
    return f"{title}{about}\n\n" + table(("by", "state", "figure"), rows)


def resumed() -> str:
    """Training killed at random instants, then inside saves, by group of scripts."""
    tables = (
        ("kill-table", "Training killed, to the undisturbed run's weights"),
        ("kill-table-in-saves", "Training killed while a checkpoint was written"),
    )
    return "\n".join(_killed(name, title) for name, title in tables)


def _killed(name: str, title: str) -> str:
    path = max(path for path in outputs(CRASH) if path.stem.endswith(name))
    latest = dict(re.findall(r"^(\w+\.\w+) +(.*)$", path.read_text(), re.MULTILINE))  # a script may have run again
    found: defaultdict[str, list[str]] = defaultdict(list)
    for script, verdict in latest.items():
        found[script.partition(".")[0]].append(verdict)
    rows = []
    for group, verdicts in found.items():
        kills = [re.search(r"(\d+) kills", verdict) for verdict in verdicts]
        killed = [verdict for verdict, count in zip(verdicts, kills, strict=True) if count is not None]
        answered = [verdict for verdict, count in zip(verdicts, kills, strict=True) if count is None]
        total = sum(int(count[1]) for count in kills if count is not None)
        inside = sum(int(count) for count in re.findall(r"(\d+) of them inside a save", "\n".join(verdicts)))
        told = f"{total}, {inside} inside a save" if inside else str(total)
        rows.append((group, _right(killed), told, _right(answered) if answered else "–"))
    if not rows:
        raise NotMeasured(f"{path}: no row")
    head = f"## {title} (`{path.relative_to(ROOT)}`)\n\n"
    return head + table(("scripts", "right", "kills", "refused in words"), rows)


def _right(verdicts: list[str]) -> str:
    return f"{sum(verdict.startswith('right') for verdict in verdicts)} of {len(verdicts)}"


def page() -> str:
    parts = (single_figures, steps, freeze, out_of_memory, checkpoints, resumed)
    return "\n".join([HEAD, *(part() for part in parts), TESTED])


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE.relative_to(ROOT))
