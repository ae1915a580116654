"""Out of memory: of the host, of a container, of the GPU, of /dev/shm."""

from __future__ import annotations

import re

from holdfast.diagnosis.reading.rule import Rule, any_of, flatten, rule, rules
from holdfast.diagnosis.tracebacks import Raised
from holdfast.vocabulary import Evidence, Finding

LOADING = (
    r"(?:np|numpy)\.(?:load|array|asarray|stack|vstack|concatenate|zeros|empty|loadtxt|genfromtxt|fromfile|memmap)\("
    r"|read_(?:csv|pickle|parquet|hdf|json)\(|load_(?:data|dataset|images|svmlight)|\.todense\(|\.toarray\("
    r"|get_dummies|to_categorical|train_test_split|img_to_array|\.readlines\(\)|json\.load|pickle\.load|imread|\.append\("
    r"|pandas[/\\]|preprocess|sklearn[/\\]"
)
STEPPING = r"(?:forward|backward|train_step|training_step|fit|train_on_batch|run_step)\b|optim"
SHM = r"shm\b|/dev/shm|/torch_\d|shared.memory"

HOST_WORDS = any_of(
    r"\[Errno 12\]",
    r"Cannot allocate memory",
    r"DefaultCPUAllocator: (?:can't|not enough)|can't allocate memory: you tried to allocate \d+ bytes",
    r"std::bad_alloc",
    r"Unable to allocate (?P<wanted>[\d.]+ [KMGT]iB) for an array",
    r"not enough memory: you tried to allocate",
    r"CPU out of memory",
)
GPU_WORDS = any_of(
    r"(?:CUDA|HIP|XPU|NPU|MPS backend|MUSA) out of memory",
    r"CUDA error: out of memory|[Tt]ried to allocate [\d.]+ [KMGT]iB \(GPU \d",
    r"cuda runtime error \(2\)",
    r"CUDA_ERROR_OUT_OF_MEMORY",
    r"cudaErrorMemoryAllocation",
    r"cudaMalloc(?:Async)? (?:retry )?failed: out of memory",
    r"hipErrorOutOfMemory",
    r"CUDA driver error: out of memory",
    r"\bGPUs?\b(?!-?\d*: task).{0,40} out of memory",
    r"Cuda failure (?:\d+ )?'out of memory'|Failed to CUDA (?:host )?[cm]alloc",
)
# The end of PyTorch's message, which is long enough to be cut.
ADVISED = r"(?:max_split_size_mb|expandable_segments:True) to avoid fragmentation"

EXCEPTIONS: tuple[Rule, ...] = flatten(
    (
        rules(
            "shared-memory-exhausted",
            (0.96, r"(?:insufficient|out of|raise your|allocate|creating) shared memory"),
            (0.62, r"unable to open shared memory object"),
            (0.96, r"(?:No space left|write to file|resize)[\s\S]{0,200}(?:" + SHM + ")"),
            (0.96, r"(?:" + SHM + r")[\s\S]{0,200}(?:No space left|Bus error)"),
            (0.85, r"signal: Bus error"),
            (0.95, r"SemLock[\s\S]{0,80}(?:\[Errno 28\]|No space left)"),
        ),
        (
            rule(
                "shared-memory-exhausted",
                0.96,
                r"\[Errno 28\]|No space left",
                frames=r"synchronize\.py|SemLock|multiprocessing/heap|shared_memory|_share_filename|_new_shared",
            ),
            rule("dataset-in-memory", 0.85, r"content is larger than 2GB|GraphDef cannot be larger than 2GB"),
            rule("dataset-in-memory", 0.82, r"MemoryError|" + HOST_WORDS, frames=LOADING),
            rule("host-memory-exhausted", 0.9, r"^", "MemoryError _ArrayMemoryError ArrowMemoryError"),
            rule("host-memory-exhausted", 0.9, HOST_WORDS, unless=SHM + "|CUDA|static TLS"),
            rule("host-memory-exhausted", 0.9, r"Java heap space|GC overhead limit"),
            rule("host-memory-exhausted", 0.6, r"unable to mmap \d+ bytes[\s\S]{0,80}Cannot allocate memory"),
            rule(
                "host-memory-exhausted",
                0.9,
                r"(?:OOM when allocating|failed to allocate|Out of memory)[\s\S]{0,400}(?:device:CPU|allocator (?:mkl)?cpu)",
                unless=r"device:GPU|GPU_\d_bfc",
            ),
            rule("gpu-memory-exhausted", 0.6, r"OOM when allocating|failed to allocate", "ResourceExhaustedError"),
            rule("host-memory-exhausted", 0.42, r"OOM when allocating|failed to allocate", "ResourceExhaustedError"),
            rule(
                "host-memory-exhausted",
                0.9,
                r"node running low on memory|memory pressure|killed due to the node",
                "OutOfMemoryError OwnerDiedError WorkerCrashedError RayTaskError",
            ),
        ),
        rules(
            "gpu-memory-exhausted",
            (0.93, GPU_WORDS),
            (0.92, r"OOM when allocating[\s\S]{0,300}(?:device:GPU|GPU_\d|/gpu:\d)"),
            (0.9, r"(?:device:GPU|GPU_\d)[\s\S]{0,300}(?:failed to allocate|out of memory)"),
            (0.88, r"RESOURCE[_ ]EXHAUSTED: (?:Out of memory|Failed to allocate request|.{0,80}trying to allocate)"),
            (0.85, r"RESOURCE_EXHAUSTED[\s\S]{0,300}(?:hbm|vmem|allocat)|out of memory in memory space (?:hbm|vmem)"),
            (0.85, r"Out of memory|trying to allocate", "ResourceExhaustedError"),  # XLA's own allocator
            (
                0.8,
                r"Out of memory (?:while trying to allocate|allocating) \d+ bytes",
                "ResourceExhaustedError XlaRuntimeError JaxRuntimeError",
            ),
            (0.82, r"Dst tensor is not initialized"),
            (0.72, ADVISED),
            (0.66, r"Unable to find a valid cuDNN algorithm|was unable to find an engine to execute"),
            (
                0.75,
                r"cublas runtime error : resource allocation failed|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|CUSOLVER_STATUS_ALLOC_FAILED",
            ),
            (0.55, r"^(?!java)", "OutOfMemoryError OutOfMemory"),
            (0.8, r"CUDA|GPU|[Tt]ried to allocate|^torch", "OutOfMemoryError OutOfMemory"),
            (0.53, r"CUBLAS_STATUS_NOT_INITIALIZED.{0,40}cublasCreate"),  # no room for its workspace
            (0.45, r"CU(?:BLAS|DNN)_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)|create cu(?:blas|dnn) handle"),
            (0.52, r"Failed to get convolution algorithm"),  # most often mended by letting the memory grow
        ),
        (
            rule(
                "gpu-memory-held-by-others",
                0.42,
                r"CU(?:BLAS|DNN)_STATUS_NOT_INITIALIZED|Failed to get convolution alg",
            ),
        ),
    )
)

LINES: tuple[Rule, ...] = flatten(
    (
        rules(
            "container-memory-limit",
            (0.95, r"constraint=CONSTRAINT_MEMCG"),
            (0.95, r"Memory cgroup out of memory: Kill(?:ed)? process"),
            (0.94, r"\bOOMKilled\b|OOM[- ]?Killed"),
            (0.93, r"(?:Exceeded|exceeded) (?:its |the |job |step )?memory limit|exceeded memory limit \("),
            (0.93, r"oom[-_]kill event|cgroup out-of-memory handler|(?-i:\bOUT_OF_ME(?:MORY|\+))"),
            (
                0.93,
                r"TERM_MEMLIMIT|job killed: (?:v|p)?mem [\d.]+\w* exceeded limit|running beyond (?:physical|virtual) memory",
            ),
            (0.9, r"(?:killed|terminated).{0,60}exceed(?:ed|ing) (?:the )?memory (?:limits?|request)"),
            (0.9, r"cgroup memory limit|memory limit of the (?:container|job)"),
            (0.9, r"\bcontainer oom [0-9a-f]{12}|topic=/tasks/oom"),
            (0.94, r"(?:srun|slurmstepd): error: .{0,120}\b(?:Out Of Memory|OOM)\b"),
            (
                0.9,
                r"(?:over|exceed\w*) (?:the |its )?(?:memory limit of|hard limit .{0,20}(?:h_vmem|h_rss)|request_memory)",
            ),
        ),
        rules(
            "host-memory-exhausted",
            (0.95, r"oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)"),
            (0.94, r"Out of memory: Kill(?:ed)? process \d+ \("),
            (0.86, r"\bKilled process \d+ \([^)\n]{1,40}\),? (?:UID:? ?\d+,? )?(?:total-vm|anon-rss)"),
            (0.9, r"session crashed after using all available RAM|tried to allocate more memory than is available"),
            (0.9, r"low on resource: memory|killed due to memory pressure|node running low on memory"),
            (0.88, r"(?:earlyoom|systemd-oomd).{0,80}(?:kill|SIGTERM)|sending SIG\w+ to process \d+ .{0,80}badness"),
            (0.72, r"invoked oom-killer"),
            (0.85, r"std::bad_alloc|(?<!CUDA )Cannot allocate memory$|Cannot allocate memory(?! in static)"),
            (0.9, r"Java heap space|GC overhead limit exceeded"),
            (0.85, r"mmap(?:ing)? (?:failed|error).{0,40}(?:memory|ENOMEM)|out of memory allocating \d+ bytes"),
            (0.8, r"Unable to allocate [\d.]+ [KMGT]iB for an array"),
            (0.4, r"Allocation of \d+ exceeds \d+% of (?:free )?system memory"),
        ),
        rules(
            "shared-memory-exhausted",
            (0.93, r"insufficient shared memory|bus error.{0,80}shm|shared memory\(shm\)|No space left.{0,80}/dev/shm"),
            (
                0.93,
                r"NCCL WARN.{0,80}(?:(?:creating|attaching to) shared memory segment|posix_fallocate failed|failed to (?:extend|create) .{0,20}(?:/dev/shm|shared memory)|Could not map /dev/shm)",
            ),
            (0.93, r"SemLock.{0,80}(?:\[Errno 28\]|No space left)"),
            (0.92, r"/dev/shm.{0,80}(?:No space|full|too small)|unable to (?:write|resize).{0,60}/torch_\d"),
            (0.61, r"\bBus error\b|总线错误|SIGBUS|exitcode\s{0,4}: -7\b"),
        ),
        rules(
            "gpu-memory-exhausted",
            (0.85, GPU_WORDS),
            (0.7, ADVISED),
            (0.62, r"^(?:E\s+)?(?:.{0,80}: )?OOM when allocating tensor(?!.{0,200}(?:device:CPU|mklcpu))"),
            (0.9, r"OP_REQUIRES failed.{0,160}OOM when allocating"),
            (
                0.7,
                r"Allocator \(GPU_\d_bfc\) ran out of memory trying to allocate (?P<wanted>[\d.]+\w+)(?!.{0,160}not a failure)",
            ),
            (0.8, r"RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)"),
            (0.66, r"Out of memory while trying to allocate (?P<wanted>\d+ bytes)"),  # XLA's, without its status
            (0.7, r"CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED"),
            (
                0.8,
                r"[Cc]ompil\w+ .{0,80}(?:unlikely to have|not) enough memory\b.{0,40}[Rr]equires|out of memory in memory space (?:hbm|vmem)",
            ),
            (0.45, r"CUDNN_STATUS_NOT_INITIALIZED|Could not create cudnn handle|failed to create cublas handle"),
        ),
    )
)

# cuDNN could not be set up: XLA adds how much of the card was free at that moment.
CARD = re.compile(r"Memory usage: (?P<free>\d+) bytes free, (?P<total>\d+) bytes total")


def weigh_card(text: str) -> Finding | None:
    found = CARD.search(text)
    if found is None:
        return None
    free, total = float(found["free"]), float(found["total"])
    seen = (Evidence(f"{_gib(free)} of the card's {_gib(total)} were free", "log", None, free),)
    if free > 0.5 * total:
        return Finding("native-library-conflict", 0.68, seen)
    return Finding("gpu-memory-held-by-others" if free < 0.1 * total else "gpu-memory-exhausted", 0.6, seen)


# "Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total capacity; 1.2 GiB already allocated; 8.00 MiB free; 1.3 GiB …"
SIZE = r"([\d.]+) ?(bytes|[KMGT]i?B|[KMGT])"
WANTED = re.compile(r"[Tt]ried to allocate " + SIZE + r"|trying to allocate " + SIZE)
TOTAL = re.compile(SIZE + r" total capacity|total capacity of " + SIZE)
FREE = re.compile(SIZE + r" free\b|of which " + SIZE + r" is free")
MINE = re.compile(SIZE + r" reserved in total|this process has " + SIZE + r" memory in use")
CACHED = re.compile(SIZE + r" cached")  # until PyTorch 1.3: what is kept beside what is allocated
HELD = re.compile(SIZE + r" already allocated|memory " + SIZE + r" is allocated by PyTorch")
IDLE = re.compile(SIZE + r" is reserved by PyTorch but unallocated")
OTHER = re.compile(r"Process \d+ has " + SIZE + r" memory in use")
UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
MOSTLY = 0.3  # of the card
CONTEXT = 0.6 * (1 << 30)  # what CUDA itself and a desktop take, and no other job


def weigh_gpu(raised: Raised) -> Finding | None:
    """PyTorch says who holds what: the arithmetic tells a card that is too small from one that is taken or in pieces."""
    text = raised.message
    wanted, total, free = size_in(WANTED, text), size_in(TOTAL, text), size_in(FREE, text)
    if wanted is None or total is None or free is None:
        return None
    mine, held, cached = size_in(MINE, text), size_in(HELD, text), size_in(CACHED, text)
    if mine is None and held is not None and cached is not None:
        mine = held + cached
    idle = size_in(IDLE, text) or ((mine - held) if mine is not None and held is not None else 0.0)
    named = [_bytes(*found) for found in OTHER.findall(text)]
    if mine is None and held is not None:
        mine = _under_another_number(named, held + idle, total - free)
    others = sum(named) or (max(0.0, total - free - mine - CONTEXT) if mine is not None else 0.0)
    sums = Evidence(
        f"asked for {_gib(wanted)}; of {_gib(total)} this process held {_gib(mine or held or 0)}, "
        f"others {_gib(max(0.0, others))}, {_gib(free)} were free",
        "stderr",
        None,
        wanted,
    )
    known = {"wanted": _gib(wanted), "total": _gib(total)}
    if others > MOSTLY * total and wanted <= others and others > (mine or 0) * 0.5:
        headline = f"Other processes hold {_gib(others)} of the GPU's {_gib(total)}"
        return Finding("gpu-memory-held-by-others", 0.85, (sums,), {**known, "headline": headline})
    if idle > max(wanted, 0.15 * total):
        headline = f"GPU memory is in pieces: {_gib(idle)} unused, but not {_gib(wanted)} in one"
        return Finding("gpu-memory-fragmented", 0.82, (sums,), {**known, "headline": headline})
    headline = f"The GPU ran out of memory: {_gib(wanted)} more of {_gib(total)}"
    return Finding("gpu-memory-exhausted", 0.93, (sums,), {**known, "headline": headline})


def _under_another_number(named: list[float], at_least: float, in_use: float) -> float | None:
    """In a container the driver knows this process by the host's number, so PyTorch takes it for another one: that which
    holds what PyTorch holds here and little more, or without which the card would hold more than it has. Taken out."""
    mine = min((one for one in named if one >= 0.98 * at_least), default=None)
    if mine is None or (mine > at_least + 2 * CONTEXT and sum(named) + at_least <= 1.02 * in_use):
        return None
    named.remove(mine)
    return mine


def size_in(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    if found is None:
        return None
    parts = [part for part in found.groups() if part is not None]
    return _bytes(parts[0], parts[1])


def _bytes(number: str, unit: str) -> float:
    try:
        return float(number) * UNITS[unit[0].lower()]
    except ValueError:
        return 0.0


def _gib(value: float) -> str:
    return f"{value / (1 << 30):.3g} GiB" if value >= 1 << 30 else f"{value / (1 << 20):.3g} MiB"
