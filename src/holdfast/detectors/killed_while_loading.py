"""Killed for memory before the first step, while data was being loaded: by the stacks taken as memory rose.

A model or a first batch that is too large also runs out of memory before the first step; the stacks tell these apart.
Without stacks nothing is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.detectors import guard_stop, memory_kill
from holdfast.detectors.endings import ending
from holdfast.detectors.files_read import DATA_FILE, files_read
from holdfast.inside.frameworks import FRAMEWORKS
from holdfast.inside.library_paths import is_library
from holdfast.recorded_events import KeptByInput
from holdfast.units import amount
from holdfast.vocabulary import Event, Evidence, Finding, Window
from holdfast.windows import reads

CAUSE = "dataset-in-memory"
SEES_STEPS = {one.module for one in FRAMEWORKS if one.counts_steps}  # elsewhere "no step was seen" says nothing
MOST_OF_IT = 0.6
A_LARGE_PART = 0.5
COPIES = frozenset({"from_tensor_slices", "from_tensors"})
A_COPY_BYTES = 96 << 20
LOADING, MODEL, STEP, OWN, IMPORT = "loading", "model", "step", "own", "import"


@dataclass(frozen=True, slots=True)
class Thresholds:
    grown_bytes: float = 96 << 20
    share: float = 0.5  # of the growth
    kept_share: float = 0.5  # of the growth, by a buffer of the pipeline's
    seen_ratio: float = 0.5  # of the room there was
    right_before_s: float = 1.0  # the end
    begun_share: float = 0.8  # where the first batch had begun, and may have been the larger part
    by_library: float = 0.9
    by_words: float = 0.85
    by_weak_words: float = 0.7
    by_place: float = 0.65  # the script's own code, and nothing in it says what it does
    after_begin: float = 0.72


# What kind of code a frame is, by its file. Code that imports or handles data decides wherever it is in the stack, since it
# may call anything. Of the rest the innermost frame that is of a known kind decides; a layer's file holds both its
# construction and its call, so the function's name is looked at before the file.
IMPORTS = re.compile(r"<frozen importlib|importlib[/\\]")
HANDLES_DATA = re.compile(
    r"[/\\](?:data_adapters|datasets|npyio|_npyio_impl|pandas|pyarrow|polars|h5py|PIL|cv2|imageio|skimage|sklearn|dask|xarray|zarr"
    r"|tables|nibabel|pydicom|librosa|soundfile|torchaudio|tokenizers|webdataset|albumentations|json|csv|pickle|gzip|zipfile|tarfile"
    r"|tensorflow_datasets|lmdb|scipy[/\\](?:io|sparse)|numpy[/\\]lib[/\\]\w*format\w*|torch[/\\]utils[/\\]data|image_utils"
    r"|torchvision[/\\](?:transforms|io)|[a-z_]*dataset[a-z_]*)(?:\.py$|[/\\])|data[/\\]ops[/\\]"
)
WEIGHTS_FILE = re.compile(
    r"\.(?:safetensors|ckpt|pth?|onnx|keras|gguf)$|pytorch_model|weights|checkpoint|model", re.IGNORECASE
)
STEP_FUNCTIONS = re.compile(
    r"^(?:_?call_impl|_wrapped_call_impl|forward|backward|_engine_run_backward|train_step|training_step|one_step_on_\w+"
    r"|train_function|apply_gradients|apply)$"
)
STEPS = re.compile(
    r"torch[/\\](?:autograd|_tensor\.py|_dynamo|_inductor)|tensorflow[/\\]python[/\\]eager[/\\](?:polymorphic_function|backprop)|keras[/\\]src[/\\](?:trainers|backend[/\\]\w+[/\\]trainer)"
)
MODELS = re.compile(
    r"torch[/\\](?:nn|optim|serialization)|keras[/\\]src[/\\](?:layers|initializers|models|optimizers|saving|random"
    r"|backend[/\\]common[/\\]variables|backend[/\\]\w+[/\\](?:core|random))|tf_keras|safetensors|huggingface_hub|init_ops"
    r"|variable_ops|transformers[/\\]|timm[/\\]|torchvision[/\\]models"
)
# Lines of the script that run a model; they often mention data as well.
STEP_WORDS = re.compile(
    r"\b(?:forward|backward|train_step|training_step|train_one_epoch|train_epoch|loss\w*|criterion|logits|hidden|predict\w*)\b"
    r"| @ |matmul|einsum|softmax|sigmoid|\brelu|\btanh|attention|\bconv\d?d?\(|\bF\.\w+\(|nn\.functional|tf\.nn\.|\bmodel\("
)
MODEL_WORDS = re.compile(
    r"weights?\b|embedding|\bParameter\b|\bVariable\(|model|\blayers?\b|Linear\(|Dense\(|Conv\d?d?\(|state_dict|pretrained"
    r"|checkpoint|optimizer",
    re.IGNORECASE,
)
LOADING_WORDS = re.compile(
    r"load|read|decod|dataset|csv|\bfiles?\b|record|shard|corpus|token|parse|\bopen\(|download|glob|fetch|image|\bdata\b|get_data",
    re.IGNORECASE,
)
# Words used for data, and for much else.
WEAK_WORDS = re.compile(
    r"sample|\.append\(|concatenate|stack\(|\bnp\.|numpy|features?\b|rows\b|\b[xX](?:_train)?\b|frames?\b|preprocess|augment",
    re.IGNORECASE,
)


@reads(
    memory_kill.find.reads,
    guard_stop.find.reads,
    latest=["train.steps_count", "cgroup.memory_limit_bytes", "host.memory_total_bytes"],
    events=[
        "checkpoint.restored", "framework.loaded", "startup.stack", "startup.files", "train.begun", "train.phase",
        KeptByInput.KIND,
    ],
)  # fmt: skip
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    killed = memory_kill.find(window) or guard_stop.find(window)
    if killed is None or killed.confidence < 0.5 or window.last("train.steps_count") is not None:
        return None
    if window.event("checkpoint.restored") is not None:
        return None  # it went on after steps of an earlier attempt: its data fitted, and what it does now is later work
    if not SEES_STEPS & {str(event.data.get("name")) for event in window.events("framework.loaded")}:
        return None
    course = _course(window)
    grown = sum(growth for growth, _, _ in course)
    kept = KeptByInput.largest(window)
    if grown < thresholds.grown_bytes or (kept is not None and kept.bytes >= thresholds.kept_share * grown):
        return None  # a shuffle buffer is filled before the first batch: the data is streamed
    by_place: dict[str, float] = {}
    for growth, place, _ in course:
        by_place[place] = by_place.get(place, 0.0) + growth
    share = (by_place.get(LOADING, 0.0) + by_place.get(OWN, 0.0)) / grown
    confidence = _confidence(window, course[-1][1], share, by_place, thresholds)
    loading = [(growth, event) for growth, place, event in course if place in (LOADING, OWN)]
    if confidence is None or not loading or _jumped_afterwards(window, course[-1][2], grown, thresholds):
        return None
    return Finding(
        CAUSE,
        confidence,
        (*_evidence(loading, grown, files_read(window)), *killed.evidence),
        headline=_headline(loading),
    )


def _course(window: Window) -> list[tuple[float, str, Event]]:
    """How much memory rose up to each reading, and what the process was doing."""
    course = []
    before: dict[Any, float] = {}
    answered = {(event.data.get("pid"), event.data["held_bytes"]) for event in window.events("startup.stack")}
    for event in window.events("startup.stack", "startup.files"):
        pid, held = event.data.get("pid"), float(event.data["held_bytes"])
        if event.kind == "startup.files" and (pid, event.data["held_bytes"]) in answered:
            continue  # its stack says more
        base = float(event.data.get("base_bytes") or 0.0)
        place = place_of(event.data["frames"]) if event.kind == "startup.stack" else _of_files(event, held - base)
        course.append((max(0.0, held - before.get(pid, base)), place, event))
        before[pid] = held
    return course


def _of_files(event: Event, grown: float) -> str:
    """No stack came: the process is in one long read, of a file that accounts for the rise."""
    large = [str(file["path"]) for file in event.data.get("files", ()) if float(file["bytes"]) >= A_LARGE_PART * grown]
    if any(WEIGHTS_FILE.search(path) for path in large):
        return MODEL
    return LOADING if any(DATA_FILE.search(path) for path in large) else ""


def _jumped_afterwards(window: Window, last: Event, grown: float, thresholds: Thresholds) -> bool:
    """Most of the memory was taken after the last stack, by unknown code."""
    how, limit = ending(window), window.value("cgroup.memory_limit_bytes")
    limit = limit or window.value("host.memory_total_bytes")
    if not limit or (how is not None and how.at - last.at < thresholds.right_before_s):
        return False
    return grown < thresholds.seen_ratio * (limit - float(last.data.get("base_bytes") or 0.0))


def _confidence(
    window: Window, last: str, share: float, by_place: Mapping[str, float], thresholds: Thresholds
) -> float | None:
    begun = window.events("train.begun", "train.phase") or last in (STEP, MODEL)
    if begun:
        told = by_place.get(LOADING, 0.0) > by_place.get(OWN, 0.0)
        return thresholds.after_begin if share >= thresholds.begun_share and told else None
    if share < thresholds.share or last not in (LOADING, OWN):
        return None
    if by_place.get(OWN, 0.0) > by_place.get(LOADING, 0.0):
        return thresholds.by_place
    stacks = window.events("startup.stack")
    if any(_told_by_library(event) for event in stacks):
        return thresholds.by_library
    said = not stacks or any(_says_so(event) for event in stacks)
    return thresholds.by_words if said else thresholds.by_weak_words


def place_of(frames: Sequence[Mapping[str, Any]]) -> str:
    libraries = [file for frame in frames if is_library(file := str(frame.get("file", "")))]
    if any(IMPORTS.search(file) for file in libraries):
        return IMPORT
    if any(HANDLES_DATA.search(file) for file in libraries):
        return LOADING
    return next((place for frame in frames if (place := _of_frame(frame))), OWN)


def _of_frame(frame: Mapping[str, Any]) -> str:
    file, function = str(frame.get("file", "")), str(frame.get("function", ""))
    if is_library(file):
        if STEPS.search(file) or (MODELS.search(file) and STEP_FUNCTIONS.match(function)):
            return STEP
        return MODEL if MODELS.search(file) else LOADING if HANDLES_DATA.search(file) else ""
    text = f"{function} {frame.get('code', '')}"
    if STEP_WORDS.search(text):
        return STEP
    model, loading = MODEL_WORDS.search(text), LOADING_WORDS.search(text) or WEAK_WORDS.search(text)
    if bool(model) == bool(loading):
        return ""
    return MODEL if model else LOADING


def _told_by_library(event: Event) -> bool:
    files = [str(frame.get("file", "")) for frame in event.data.get("frames", ())]
    return any(is_library(file) and HANDLES_DATA.search(file) for file in files)


def _says_so(event: Event) -> bool:
    own = [frame for frame in event.data.get("frames", ()) if not is_library(str(frame.get("file", "")))]
    return any(LOADING_WORDS.search(f"{frame.get('function')} {frame.get('code', '')}") for frame in own)


def _evidence(loading: Sequence[tuple[float, Event]], grown: float, reading: list[Evidence]) -> list[Evidence]:
    at = loading[-1][1].at
    evidence = [Evidence(f"memory rose by {amount(grown, 'bytes')} before the first step", "telemetry", at, grown)]
    evidence += reading
    if (found := _line(loading)) is not None:
        (file, number, function, code), rose = found
        text = f"{amount(rose, 'bytes')} of it while the script was at {file}:{number} in {function}"
        evidence.append(Evidence(text + (f": {code}" if code else ""), "telemetry", at, rose))
    return [*evidence, *_copied_into_tensorflow(loading)]


def _copied_into_tensorflow(loading: Sequence[tuple[float, Event]]) -> list[Evidence]:
    """An array given to `from_tensor_slices`, or to Keras's `fit`, becomes a tensor beside the array."""
    copies = [
        (rise, event)
        for rise, event in loading
        if any(frame.get("function") in COPIES for frame in event.data.get("frames", ()))
    ]
    rise = sum(rise for rise, _ in copies)
    if rise < A_COPY_BYTES:
        return []
    text = f"{amount(rise, 'bytes')} of it while TensorFlow copied arrays given to it whole: they are then held twice"
    return [Evidence(text, "telemetry", copies[-1][1].at, rise)]


def _headline(loading: Sequence[tuple[float, Event]]) -> str:
    found = _line(loading)
    where = f" ({found[0][0]}:{found[0][1]} in {found[0][2]})" if found else ""
    return f"The data set was loaded whole and does not fit into memory{where}"


def _line(loading: Sequence[tuple[float, Event]]) -> tuple[tuple[str, int, str, str], float] | None:
    """The script's innermost line under which most of the rise came, and how much."""
    rises: dict[tuple[str, int, str, str], float] = {}
    depth: dict[tuple[str, int, str, str], int] = {}
    for rise, event in loading:
        own = [frame for frame in event.data.get("frames", ()) if not is_library(str(frame.get("file", "")))]
        for level, frame in enumerate(reversed(own)):
            line = (str(frame["file"]), int(frame["line"]), str(frame["function"]), str(frame.get("code", "")))
            rises[line] = rises.get(line, 0.0) + rise
            depth[line] = max(level, depth.get(line, 0))
    whole = sum(rise for rise, _ in loading)
    most = [line for line, rise in rises.items() if rise >= MOST_OF_IT * whole]
    innermost = max(most, key=lambda line: depth[line], default=None)
    return None if innermost is None else (innermost, rises[innermost])
