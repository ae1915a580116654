"""How fast `holdfast audit` reads, beside raw reading and others on the same check: python -m bench.audit [--rounds N] [--folder DIR]

The check: how many values of each column are not finite. `quick` is that with the rows and the rest of what breaks training;
`whole` adds duplicates, moments, ranges and scales. Each measurement is a process of its own, timed after its imports. Cold
means after dropping the page cache, which needs root. The last part audits a sparse array of 20 GB under a memory limit.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, COLUMNS = 8_000_000, 64
ROWS_TOGETHER = 1_000_000  # a row group, pyarrow's own default
LIMIT_BYTES = 500 << 20
SPARSE_ROWS = 80_000_000
GROUPS = Path("/sys/fs/cgroup/memory")

HOLDFAST = """
from pathlib import Path
from holdfast.data.audit import Request, audit
from holdfast.data.audit.tables import Wanted
from holdfast.data.formats import open_path
from holdfast.data.formats import arrow_columns, csv_text, npy, npz, parquet, tfrecord, zarr_store
def work(path):
    for table in open_path(Path(path)).tables: table.close()
    report = audit(Request([Path(path)], wanted=Wanted(is_quick={quick})))
    return sum(one.count for one in report.findings if one.id == "non-finite")
"""
PROGRAMS: dict[tuple[str, str], str] = {
    ("npy", "raw read"): """
def work(path):
    buffer = bytearray(8 << 20)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer): pass
    return 3
""",
    ("npy", "naive NumPy"): """
import numpy as np
def work(path):
    values = np.load(path)
    return int((np.isnan(values).sum(axis=0) + np.isinf(values).sum(axis=0)).sum())
""",
    ("npy", "polars"): """
import numpy as np, polars as pl
def work(path):
    frame = pl.from_numpy(np.load(path, mmap_mode="r"))
    return sum(frame.select((~pl.all().is_finite()).sum()).row(0))
""",
    ("npy", "pyarrow"): """
import numpy as np, pyarrow as pa, pyarrow.compute as pc
def work(path):
    values = np.load(path, mmap_mode="r")
    return sum(len(values) - pc.sum(pc.is_finite(pa.array(values[:, column]))).as_py() for column in range(values.shape[1]))
""",
    ("npy", "pandera"): """
import numpy as np, pandas as pd, pandera.pandas as pa
def work(path):
    frame = pd.DataFrame(np.load(path))
    check = pa.Check(lambda column: np.isfinite(column), ignore_na=False)
    schema = pa.DataFrameSchema({name: pa.Column("float32", check, nullable=True) for name in frame.columns})
    try:
        schema.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as error:
        return int((error.failure_cases["check"] != "not_nullable").sum())
""",
    ("parquet", "polars"): """
import polars as pl
def work(path):
    return sum(pl.scan_parquet(path).select((~pl.all().is_finite()).sum()).collect(engine="streaming").row(0))
""",
    ("parquet", "pyarrow"): """
import pyarrow.parquet as pq, pyarrow.compute as pc
def work(path):
    bad = 0
    for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(65536):
        bad += sum(len(column) - pc.sum(pc.is_finite(column)).as_py() for column in batch.columns)
    return bad
""",
    ("parquet", "naive NumPy"): """
import numpy as np, pandas as pd
def work(path):
    values = pd.read_parquet(path).to_numpy()
    return int((np.isnan(values).sum(axis=0) + np.isinf(values).sum(axis=0)).sum())
""",
    ("parquet", "pandera"): """
import numpy as np, pandas as pd, pandera.pandas as pa
def work(path):
    frame = pd.read_parquet(path)
    check = pa.Check(lambda column: np.isfinite(column), ignore_na=False)
    schema = pa.DataFrameSchema({name: pa.Column("float32", check, nullable=True) for name in frame.columns})
    try:
        schema.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as error:
        return int((error.failure_cases["check"] != "not_nullable").sum())
""",
}
for kind in ("npy", "parquet"):
    PROGRAMS[kind, "holdfast, quick"] = HOLDFAST.format(quick=True)
    PROGRAMS[kind, "holdfast, whole"] = HOLDFAST.format(quick=False)
PROGRAMS["parquet", "raw read"] = PROGRAMS["npy", "raw read"]
TIMED = """
import resource, sys, time
before = resource.getrusage(resource.RUSAGE_SELF)
began = time.perf_counter()
bad = work(sys.argv[1])
took = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
# Not ru_maxrss, which begins with that of the process it was forked from.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(took, bad, peak, used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime)
"""


def make(folder: Path) -> dict[str, Path]:
    """Random rows, with one NaN and two infinities."""
    chance = np.random.default_rng(0)
    paths = {"npy": folder / "values.npy", "parquet": folder / "values.parquet"}
    values = np.lib.format.open_memmap(paths["npy"], "w+", np.float32, (ROWS, COLUMNS))
    schema = pa.schema([(f"c{number}", pa.float32()) for number in range(COLUMNS)])
    with pq.ParquetWriter(paths["parquet"], schema, use_dictionary=False) as writer:
        for first in range(0, ROWS, ROWS_TOGETHER):
            piece = chance.standard_normal((ROWS_TOGETHER, COLUMNS), np.float32)
            if first == 0:
                piece[5, 3], piece[100_000, 3], piece[999_999, 63] = np.nan, np.inf, -np.inf
            values[first : first + ROWS_TOGETHER] = piece
            writer.write_table(pa.table(list(piece.T), schema=schema), row_group_size=ROWS_TOGETHER)
    values.flush()
    return paths


@dataclass(frozen=True)
class Measured:
    seconds: float
    processor_s: float
    peak_mib: float


def measured(program: str, path: Path, cold: bool) -> Measured:
    os.sync()
    if cold:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    command = [sys.executable, "-W", "ignore", "-c", program + TIMED, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, bad, peak, processor_s = done.stdout.split()
    if int(bad) != 3:
        raise SystemExit(f"{bad} values instead of 3: {program}")
    return Measured(float(seconds), float(processor_s), int(peak) / 1024)


def compare(paths: dict[str, Path], rounds: int, chosen: list[tuple[str, str]]) -> None:
    chance = random.Random(0)
    took: defaultdict[tuple[str, str, str], list[Measured]] = defaultdict(list)
    for heat in ("warm", "cold"):
        for turn in range(rounds):
            order = [key for key in chosen if key[1] != "pandera" or turn == 0]
            chance.shuffle(order)
            for kind, who in order:
                one = measured(PROGRAMS[kind, who], paths[kind], heat == "cold")
                took[kind, heat, who].append(one)
                print(
                    f"{kind}, {heat}, {who}: {one.seconds:.2f} s, {one.processor_s:.2f} s of processor",
                    file=sys.stderr,
                    flush=True,
                )
    for kind, path in paths.items():
        size = path.stat().st_size / 1e9
        for heat in ("warm", "cold"):
            if not any(of == kind for of, _ in chosen):
                continue
            raw = median(one.seconds for one in took[kind, heat, "raw read"])
            for who in [name for of, name in chosen if of == kind]:
                runs = took[kind, heat, who]
                seconds = sorted(one.seconds for one in runs)
                print(
                    f"audit, {size:.2f} GB {kind}, {heat}, {who}: {size / median(seconds):.2f} GB/s "
                    f"({seconds[0]:.2f} to {seconds[-1]:.2f} s, {len(runs)} rounds), {raw / median(seconds):.0%} of raw read, "
                    f"{median(one.processor_s for one in runs):.2f} s of processor, peak {max(one.peak_mib for one in runs):.0f} MiB"
                )


def sparse(folder: Path) -> None:
    """Under a limit of its own where one can be set, so that the page cache counts as well."""
    path = folder / "sparse.npy"
    with open(path, "wb") as file:
        shape = (SPARSE_ROWS, COLUMNS)
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        file.truncate(file.tell() + SPARSE_ROWS * COLUMNS * 4)
        file.seek(-4, 2)
        file.write(np.float32(np.nan).tobytes())
    group = GROUPS / f"holdfast-bench-{os.getpid()}"
    limited = "no limit"
    if os.access(GROUPS, os.W_OK):
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
        limited = f"limit of {LIMIT_BYTES >> 20} MiB"
    join = f"import os\nfrom pathlib import Path\nplace = Path({str(group)!r}) / 'cgroup.procs'\nplace.exists() and place.write_text(str(os.getpid()))\n"
    try:
        for who, quick in (("whole", False), ("quick", True)):
            program = join + HOLDFAST.format(quick=quick) + TIMED
            done = subprocess.run(
                [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, check=True
            )
            seconds, bad, peak, _ = done.stdout.split()
            print(
                f"audit, sparse, {path.stat().st_size / 1e9:.1f} GB npy, {who}, {limited}: {float(seconds):.1f} s, "
                f"{bad} found, peak RSS {int(peak) / 1024:.0f} MiB"
            )
    finally:
        path.unlink()
        if group.exists():
            group.rmdir()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where 4 GB may be written for the time being")
    parser.add_argument("--nice", type=int, default=0, help="of what is measured, on a machine that others use as well")
    parser.add_argument(
        "--programs",
        nargs="+",
        help='how they begin, as in "npy, raw read" "npy, holdfast"; the raw read of a format is needed',
    )
    parser.add_argument("--only", choices=("compare", "sparse"))
    options = parser.parse_args()
    if options.nice:
        Path("/proc/self/autogroup").write_text(str(options.nice))  # of this session: nice(1) counts only within it
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.only != "sparse":
            chosen = [
                key for key in PROGRAMS if not options.programs or ", ".join(key).startswith(tuple(options.programs))
            ]
            compare(make(Path(folder)), options.rounds, chosen)
        if options.only != "compare":
            sparse(Path(folder))


if __name__ == "__main__":
    main()
