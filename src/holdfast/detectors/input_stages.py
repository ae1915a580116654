"""What the time goes into that training waits for: reading, decoding, augmenting, handing over; by stacks of whoever prepares the data."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.inside.library_paths import is_library
from holdfast.recorded_events import InputPipeline, PipelineCall
from holdfast.vocabulary import Window

KIND = "input.stacks"
READ, DECODE, RESIZE, AUGMENT, TRANSFER, SLEEP, OWN = "read", "decode", "resize", "augment", "transfer", "sleep", "own"
PYTHON = "python"  # in a tf.data pipeline
WORDS = {
    READ: "reading", DECODE: "decoding", RESIZE: "resizing", AUGMENT: "augmenting", TRANSFER: "putting batches together and handing them over",
    SLEEP: "waiting in the script's own code", OWN: "the script's own code",
}  # fmt: skip
LEAST = 3  # looks at which somebody prepared
MOST_WORKERS = 8  # that are advised
FETCHES = re.compile(
    r"torch[/\\]utils[/\\]data[/\\]_utils[/\\](?:fetch|worker)\.py|script_ops\.py|data_adapters[/\\]|holdfast[/\\]data[/\\]"
)
WORKER = re.compile(r"torch[/\\]utils[/\\]data[/\\]_utils[/\\]worker\.py")
WAITS_FOR_WORKERS = frozenset({"_try_get_data", "_get_data"})
LIBRARIES = (
    (TRANSFER, re.compile(r"pin_memory\.py|collate\.py|multiprocessing[/\\](?:queues|reductions|connection)\.py|reductions\.py")),
    (RESIZE, re.compile(r"PIL[/\\]Image\.py (?:resize|thumbnail|reduce|draft)$|torchvision[/\\]transforms.* resize$|skimage[/\\]transform.* (?:resize|rescale)$")),
    (AUGMENT, re.compile(r"PIL[/\\]Image\.py (?:rotate|crop|transpose|transform|filter|point)$|PIL[/\\]Image(?:Ops|Enhance|Filter|Chops)|torchvision[/\\]transforms|albumentations|kornia|imgaug|augmentations?[/\\]|keras[/\\]src[/\\]layers[/\\]preprocessing|scipy[/\\]ndimage|skimage[/\\]transform|audiomentations")),
    (DECODE, re.compile(r"torchvision[/\\]io|imageio|soundfile|librosa|torchaudio|pydicom|nibabel|tokeniz|[/\\]json[/\\]|[/\\]csv\.py|[/\\]gzip\.py|pickle\.py|[/\\]PIL[/\\](?:ImageFile|\w*Plugin|Image\.py (?:open|load|convert|copy|frombytes|tobytes)$)|pandas[/\\]|pyarrow[/\\]|sentencepiece")),
    (READ, re.compile(r"npyio|numpy[/\\]lib[/\\]\w*format|h5py|zarr|lmdb|fsspec|s3fs|boto|requests[/\\]|urllib|http[/\\]client|zipfile|tarfile|socket\.py|ssl\.py")),
)  # fmt: skip
LINES = (
    (DECODE, re.compile(r"Image\.open|imread|imdecode")),
    (RESIZE, re.compile(r"resiz|thumbnail|rescal", re.IGNORECASE)),
    (AUGMENT, re.compile(r"augment|transform|rotat|flip|crop|jitter|noise|warp|blur|mixup", re.IGNORECASE)),
    (DECODE, re.compile(r"decod|json\.loads?|pars|unpack|tokeni[sz]|\.convert\(", re.IGNORECASE)),
    (READ, re.compile(r"\bopen\(|\bread|\bload|fetch|download|glob\(|\.get\(|request|query|execute\(", re.IGNORECASE)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stages:
    stage: str
    looks: int  # of so many that showed anything
    of: int
    line: str  # of the script, under which most of it was seen
    file: str
    file_system: str
    workers: int  # processes that prepare
    idle_looks: int
    cpus: int

    @property
    def told(self) -> str:
        at = "in" if self.line.startswith("the function ") else "at"
        where = f", {at} {self.line}" if self.line else ""
        return f"{WORDS[self.stage]} takes the time ({self.looks} of {self.of} looks){where}"


class Seen(NamedTuple):
    stage: str
    line: str


def stages(window: Window) -> Stages | None:
    event = window.event(KIND)
    if event is None:
        return None
    trainers = set(event.data.get("trainers", ()))
    seen: list[Seen] = []
    files: Counter[tuple[str, str]] = Counter()
    workers: set[int] = set()
    idle = 0
    for thread in (thread for look in event.data.get("looks", ()) for thread in look):
        frames = thread.get("frames", ())
        if thread["pid"] not in trainers and any(WORKER.search(str(frame[0])) for frame in frames):
            workers.add(int(thread["pid"]))
        found = of_thread(thread)
        if found is None:
            idle += 1
            continue
        seen.append(found)
        if thread.get("file"):
            files[str(thread["file"]), str(thread.get("file_system", ""))] += 1
    if len(seen) < LEAST:
        return None
    (stage, count), *_ = Counter(one.stage for one in seen).most_common()
    lines = Counter(one.line for one in seen if one.stage == stage and one.line)
    file, file_system = files.most_common(1)[0][0] if files else ("", "")
    line = lines.most_common(1)[0][0] if lines else ""
    return Stages(stage, count, len(seen), line, file, file_system, len(workers), idle, int(event.data.get("cpus", 1)))


def of_thread(thread: Mapping[str, Any]) -> Seen | None:
    """None where it prepares nothing: it waits for work, or for the workers, or computes."""
    inner = _below_the_loader(thread.get("frames", ()))
    if inner is None:
        return None
    own = next((frame for frame in inner if not is_library(str(frame[0]))), None)
    line = (
        f"{own[0]}:{own[1]} in {own[2]}" + (f": {own[3]}" if own[3] else "") if own is not None else _converted(inner)
    )
    blocked = thread.get("wait") in ("read", "file") and thread.get("on") == "file"
    if thread.get("state") == "D" or blocked or thread.get("on") == "socket":
        return Seen(READ, line)
    for frame in inner:
        stage = _of_frame(frame)
        if stage:
            return Seen(SLEEP if stage == OWN and thread.get("wait") == "sleep" else stage, line)
    if thread.get("wait") == "sleep":
        return Seen(SLEEP, line)
    return Seen(OWN, line) if line else None


def _converted(inner: Sequence[Sequence[Any]]) -> str:
    """The function of the script's that TensorFlow runs as a copy it has made, whose lines nobody has."""
    return next(
        (f"the function {frame[2]}" for frame in reversed(inner) if "__autograph_generated" in str(frame[0])), ""
    )


def _below_the_loader(frames: Sequence[Sequence[Any]]) -> list[Sequence[Any]] | None:
    """What the loader has called, innermost first; None where it has called nothing but a queue."""
    for number, frame in enumerate(frames):
        if str(frame[2]) in WAITS_FOR_WORKERS:
            return None
        if FETCHES.search(str(frame[0])):
            inner = list(frames[:number])
            waits = WORKER.search(str(frame[0])) and all(is_library(str(one[0])) for one in inner)
            return None if waits else inner
    return None


def _of_frame(frame: Sequence[Any]) -> str:
    file, _, function, code = frame
    if is_library(str(file)):
        return next((stage for stage, pattern in LIBRARIES if pattern.search(f"{file} {function}")), "")
    return next((stage for stage, pattern in LINES if pattern.search(f"{function} {code}")), "")


class Gain(NamedTuple):
    workers: int
    step_s: float
    times: float  # as fast


def with_workers(step_s: float, wait_ratio: float, found: Stages, busy_cores: float | None) -> Gain | None:
    """What more processes would bring, by what a step waits and computes now. Those that compute need processors of their own."""
    computes_s = max(step_s * (1 - wait_ratio), 1e-6)
    have = max(1, found.workers)
    prepares_s = have * step_s if found.workers else step_s * wait_ratio  # of one process, for one batch
    wanted = max(have + (1 if found.workers else 0), math.ceil(prepares_s / computes_s - 1e-6))
    free = found.cpus - 1
    most = (
        MOST_WORKERS
        if found.stage in (READ, SLEEP) and (busy_cores or 0.0) < 0.5 * found.cpus
        else min(MOST_WORKERS, free)
    )
    workers = min(wanted, most)
    if workers < 1 or (found.workers and workers <= found.workers):
        return None
    then_s = max(computes_s, prepares_s / workers)
    times = step_s / then_s
    return Gain(workers, then_s, times) if times >= 1.1 else None


def in_native_code(window: Window) -> tuple[str, list[PipelineCall]] | None:
    """What a tf.data pipeline computes for its rows, in words and by call; None where nothing is known, or Python does it."""
    pipeline = InputPipeline.of_training(window)
    if pipeline is None or any(PYTHON in call.does for call in pipeline.calls):
        return None
    does = [stage for stage in (DECODE, RESIZE, AUGMENT) if any(stage in call.does for call in pipeline.calls)]
    if not does:
        return None
    words = [WORDS[stage] for stage in does]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words), list(pipeline.calls)


def alone_in_native_code(window: Window) -> Stages | None:
    """Of a pipeline that computes one row after another: as one who prepares, without a worker."""
    event = window.event(KIND)
    return Stages(DECODE, 0, 0, "", "", "", 0, 0, int(event.data.get("cpus", 1))) if event is not None else None
