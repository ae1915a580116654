"""Writes docs/measured.md from the dated outputs of the measuring commands: `python -m bench.report`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/measured.md"
BENCH, LAB, CRASH = "bench/results", "lab/results", "tests/crash/results"
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
RATIO = r"ratio (?P<ratio>[\d.]+) \(middle half (?P<low>[\d.]+) to (?P<high>[\d.]+), (?P<rounds>\d+) rounds\)"


class NotMeasured(Exception):
    """No result has this figure."""


@dataclass(frozen=True)
class Figure:
    """A line of a result: what it is called here, how it is found, and how it is told."""

    what: str
    pattern: str
    told: str
    folder: str = BENCH


FIGURES = (
    Figure(
        "until the script's first line",
        r"start-up, first line, ms: bare (?P<bare>[\d.]+), .*added: (?P<added>\d+) ms",
        "{added} ms more than {bare} ms",
    ),
    Figure(
        "a run that only prints a line",
        r"start-up, whole run, ms: bare (?P<bare>[\d.]+), .*added: (?P<added>\d+) ms",
        "{added} ms more than {bare} ms",
    ),
    Figure(
        "memory of all Holdfast processes, quiet",
        r"weight: (?P<count>\d+) processes, RSS (?P<rss>[\d.]+) MiB \(shared pages counted once: (?P<pss>[\d.]+) MiB\)",
        "{rss} MiB RSS in {count} processes, {pss} MiB with shared pages counted once",
    ),
    Figure(
        "processor time, quiet",
        r"processor time while quiet: (?P<share>[\d.]+)% of one core over (?P<seconds>\d+) s",
        "{share} % of one core",
    ),
    Figure("journal, before thinning", r"journal: (?P<size>[\d.]+) MB an hour", "{size} MB an hour"),
    Figure(
        "300 MB of printed lines, against `cat`",
        r"pass-through, 300 MB of lines, s: .*" + RATIO,
        "{ratio} × the time ({low} to {high})",
    ),
    Figure(
        "one line of 100 MB, against `cat`",
        r"pass-through, one line of 100 MB, s: .*" + RATIO,
        "{ratio} × the time ({low} to {high})",
    ),
    Figure(
        "Holdfast's memory while 2 GB are printed",
        r"memory while 2 GB pass through: (?P<more>\S+) MiB",
        "{more} MiB",
    ),
    Figure(
        "`why` of a log of 1 GB",
        r"why, a log of 1000 MB: .*, (?P<speed>\d+) MB/s, peak (?P<peak>\d+) MiB",
        "{speed} MB/s in {peak} MiB",
    ),
    Figure(
        "`why` of a job of {ranks} ranks, an hour of record each",
        r"why, a job of (?P<ranks>\d+) ranks with 3600 s .*: (?P<took>[\d.]+) s \((?P<used>[\d.]+) s of processor time\), peak (?P<peak>\d+) MiB",
        "{took} s ({used} s of processor time) in {peak} MiB",
    ),
    Figure(
        "taking the stacks of a process of {threads} threads, {frames} frames each, that runs Python",
        r"stacks, (?P<threads>\d+) threads of (?P<frames>\d+) frames, main thread busy: .*of which it works (?P<middle>[\d.]+) ms "
        r"\(95 % below (?P<high>[\d.]+), most (?P<most>[\d.]+)\)",
        "it answers for {middle} ms ({high} ms in 95 of 100, {most} ms at most), without what others took of the processors",
    ),
    Figure(
        "`holdfast audit --quick` of {size} GB of `.npy`, not in the page cache",
        r"audit, (?P<size>[\d.]+) GB npy, cold, holdfast, quick: (?P<speed>[\d.]+) GB/s .*?, (?P<share>\d+)% of raw read",
        "{speed} GB/s, {share} % of raw reading",
    ),
    Figure(
        "`holdfast audit` of the same, all of it; 80 % of raw reading is aimed at, and held by `--quick` alone",
        r"audit, [\d.]+ GB npy, cold, holdfast, whole: (?P<speed>[\d.]+) GB/s .*?, (?P<share>\d+)% of raw read",
        "{speed} GB/s, {share} % of raw reading",
    ),
    Figure(
        "`holdfast audit --quick` of {size} GB of Parquet, warm",
        r"audit, (?P<size>[\d.]+) GB parquet, warm, holdfast, quick: (?P<speed>[\d.]+) GB/s",
        "{speed} GB/s",
    ),
    Figure(
        "polars on the same check of it",
        r"audit, [\d.]+ GB parquet, warm, polars: (?P<speed>[\d.]+) GB/s",
        "{speed} GB/s",
    ),
    Figure(
        "`holdfast audit` of a sparse array of {size} GB, memory",
        r"audit, sparse, (?P<size>[\d.]+) GB npy, whole, (?P<limit>.*?): (?P<seconds>[\d.]+) s, .*peak RSS (?P<peak>\d+) MiB",
        "{peak} MiB RSS at most, in a group with a {limit} (page cache counts)",
    ),
    Figure(
        "`holdfast audit --quick` of {size} GB of CSV, warm",
        r"audit, (?P<size>[\d.]+) GB csv, warm, holdfast, quick: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "polars on the same check of the CSV",
        r"audit, (?P<size>[\d.]+) GB csv, warm, polars: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "`holdfast audit --quick` of {size} GB of compressed `.npz`, warm",
        r"audit, (?P<size>[\d.]+) GB npz, warm, holdfast, quick: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "NumPy on the same check of it",
        r"audit, (?P<size>[\d.]+) GB npz, warm, NumPy: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "`holdfast audit --quick` of {size} GB of Zarr, warm",
        r"audit, (?P<size>[\d.]+) GB zarr, warm, holdfast, quick: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "zarr on the same check of it",
        r"audit, (?P<size>[\d.]+) GB zarr, warm, zarr: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "`holdfast audit --quick` of {size} GB of TFRecord, warm",
        r"audit, (?P<size>[\d.]+) GB tfrecord, warm, holdfast, quick: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "tf.data on the same check of it",
        r"audit, (?P<size>[\d.]+) GB tfrecord, warm, tf.data: (?P<speed>[\d.]+) GB/s .*?, (?P<seconds>[\d.]+) s of processor, peak (?P<peak>\d+) MiB",
        "{speed} GB/s, {seconds} s of processor, {peak} MiB",
    ),
    Figure(
        "a step in Keras on streamed data of four times the memory, against data in memory",
        r"stream, keras, a step of 3 MiB, ms: from memory (?P<bare>[\d.]+), streamed [\d.]+, " + RATIO,
        "{ratio} × of {bare} ms ({low} to {high}, {rounds} rounds)",
    ),
    Figure(
        "the same by processor time",
        r"stream, keras, a step of 3 MiB, ms of processor time: from memory (?P<bare>[\d.]+), streamed [\d.]+, "
        + RATIO,
        "{ratio} × of {bare} ms ({low} to {high}, {rounds} rounds)",
    ),
    Figure(
        "a step in PyTorch on streamed data of four times the memory, against data in memory",
        r"stream, torch, a step of 3 MiB, ms: from memory (?P<bare>[\d.]+), streamed [\d.]+, " + RATIO,
        "{ratio} × of {bare} ms ({low} to {high}, {rounds} rounds)",
    ),
    Figure(
        "the same by processor time",
        r"stream, torch, a step of 3 MiB, ms of processor time: from memory (?P<bare>[\d.]+), streamed [\d.]+, "
        + RATIO,
        "{ratio} × of {bare} ms ({low} to {high}, {rounds} rounds)",
    ),
    Figure(
        "peak of a training process on the CPU as `plan` predicts it: {models} models, {batches} batches that were not measured",
        r"plan errors, all: (?P<models>\d+) models, (?P<batches>\d+) batches: median (?P<median>[\d.]+) %, 95th percentile (?P<high>[\d.]+) %, "
        r"most below the truth -?(?P<low>[\d.]+) %, most above (?P<above>[\d.]+) %, of the step's part: median (?P<step>[\d.]+) %",
        "{median} % off in the median ({step} % of what steps add), {high} % in 95 of 100; {low} % below the truth and {above} % above it at most",
    ),
    Figure(
        "a PyTorch step of {bare} ms under `torch.autograd.set_detect_anomaly`, on a busy machine",
        r"torch: a step takes (?P<bare>[\d.]+) ms bare\n.*\n +torch, torch.autograd.set_detect_anomaly +(?P<ratio>[\d.]+) \((?P<low>[\d.]+) to (?P<high>[\d.]+)\)",
        "{ratio} × the time ({low} to {high})",
    ),
    Figure(
        "the same step under `holdfast run`, in the same turns",
        r"torch, holdfast run +(?P<ratio>[\d.]+) \((?P<low>[\d.]+) to (?P<high>[\d.]+)\)",
        "{ratio} × the time ({low} to {high})",
    ),
    Figure(
        "failing programs of the laboratory, over {causes} causes",
        r"right at first place: (?P<right>\d+) of (?P<all>\d+) .*over (?P<causes>\d+) causes; confidently wrong: (?P<wrong>\d+)",
        "{right} of {all} right at first place, {wrong} confidently wrong ([docs/lab.md](lab.md))",
        LAB,
    ),
    Figure(
        "healthy programs of the laboratory",
        r"(?P<false>\d+) false alarms on (?P<all>\d+) healthy programs",
        "{false} false alarms on {all}",
        LAB,
    ),
    Figure(
        "captured outputs that no rule was written from: {failing} failing, {healthy} healthy",
        r"at first sight: (?P<right>\d+) of (?P<failing>\d+) failing outputs right.* (?P<wrong>\d+) wrong, (?P<none>\d+) without an answer; "
        r"(?P<alarms>\d+) false alarms on (?P<healthy>\d+) healthy outputs; (?P<surely>\d+) confidently wrong",
        "{right} right, {none} without an answer, {wrong} wrong, {alarms} false alarms; {surely} confidently wrong ([docs/why.md](why.md))",
        LAB,
    ),
    Figure(
        "watcher, relay or script killed at random instants",
        r"(?m)^(?P<right>\d+) of (?P<all>\d+) right$",
        "{right} of {all} endings and records right",
        CRASH,
    ),
)


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
