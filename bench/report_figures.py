"""The single figures of docs/measured.md: what each is called there, and how it is found in the results."""

from __future__ import annotations

from dataclasses import dataclass

BENCH, LAB, CRASH = "bench/results", "lab/results", "tests/crash/results"
RATIO = r"ratio (?P<ratio>[\d.]+) \(middle half (?P<low>[\d.]+) to (?P<high>[\d.]+), (?P<rounds>\d+) rounds\)"


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
