"""The GPU, its driver and its libraries."""

from __future__ import annotations

import re

from holdfast.diagnosis.reading.rule import Rule, any_of, flatten, rule, rules
from holdfast.vocabulary import Evidence, Finding

CUDA_LIBRARY = r"(?:libcu\w+|libnvidia-[\w-]+|libnv\w+|libnccl|libdevice|cudart64\w*|cudnn\w*64\w*|cublas64\w*|libcupti|libcusparse\w*|cudnn_\w+64_\d+|nvrtc\w*64\w*|cu(?:fft|rand|solver|sparse)\w*64\w*)"
MISSING = any_of(
    CUDA_LIBRARY + r"[\w.-]*(?:'|\")?:? (?:cannot open shared object|not found|was not found)",
    r"Could not (?:load (?:dynamic )?library|find|locate) '?" + CUDA_LIBRARY,
    r"libdevice (?:not found|is required by)|Can't find libdevice",
    r"Unable to load (?:any of \{?)?(?:libcu|CUDA|cuDNN)|CUDA_HOME environment variable is not set|Could not find module '[^\n']{0,120}(?:cud|torch)",
    r"dlerror: .{0,200}undefined symbol: (?:cudnn|cublas|cufft)|could not find cudnn\w+ in|Unable to load cuDNN",
    r"libtorch_cuda\w*\.so: cannot open shared object|CUDA Setup failed despite GPU being available|cuDNN.{0,40}not (?:found|installed)|Unable to find (?:cuDNN|CUDA|cuBLAS)|Is it installed\?",
)
TOO_OLD = any_of(
    r"NVIDIA driver on your system is too old|driver version is insufficient|cudaErrorInsufficientDriver|CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    r"PTX was compiled with an unsupported toolchain|compatibility was attempted on non supported HW|CUDA_ERROR_COMPAT_NOT_SUPPORTED",
    r"caused by (?:a )?stale driver|unsupported display driver|SYSTEM_DRIVER_MISMATCH|does not match DSO version|Driver/library version mismatch|requires (?:a )?(?:newer )?(?:NVIDIA )?driver|update your (?:GPU|NVIDIA) driver|forward compat",
)
ARCHITECTURE = any_of(
    r"HSA_STATUS_ERROR_INVALID_ISA|hipErrorNoBinaryForGpu|hipErrorInvalidDeviceFunction|Cannot read \S{0,200}TensileLibrary|no kernel found to launch|CUDNN_STATUS_ARCH_MISMATCH|(?:device )?kernel image is invalid|CUDA_ERROR_INVALID_IMAGE|ptxas (?:too old|does not support CC)|no kernel image is available|is not compatible with the current PyTorch installation|NoKernelImageForDevice|NO_BINARY_FOR_GPU",
    r"setup doesn't support bf16|only supports? (?:Ampere|Hopper|Turing|Volta|Ada)|minimum required Cuda capability|no longer supports this GPU|requires? (?:a )?(?:GPU with )?compute capability",
    r"only supported on (?:GPUs|devices) with compute capability|Unsupported gpu architecture|'sm_\d+' is not (?:defined|a recognized)|Expected is_sm\d+",
    r"compute capability .{0,60}(?:too (?:low|old)|not supported|unsupported|at least)|not supported on this (?:GPU )?architecture|invalid device function",
)
# One process at a time may have a TPU.
IN_USE = r"(?:TPU|libtpu\S{0,4}|accelerator)s? (?:is |are )?already in used? by"

EXCEPTIONS: tuple[Rule, ...] = flatten(
    (
        rules(
            "cuda-library-missing",
            (0.94, MISSING),
            (0.62, r"Torch not compiled with CUDA enabled"),
            (0.58, r"DNN library is not found"),
            (0.55, r"Found no NVIDIA driver|No CUDA runtime is found|Couldn't invoke ptxas|nvcc.{0,20}not found"),
        ),
        rules("gpu-driver-too-old", (0.95, TOO_OLD)),
        rules("gpu-architecture-unsupported", (0.95, ARCHITECTURE)),
        rules(
            "gpu-hardware-fault",
            (0.95, r"uncorrectable (?:ECC|NVLink)|cudaErrorECCUncorrectable|ECC error|hardware (?:stack )?error"),
        ),
        rules(
            "gpu-lost",
            (0.93, r"GPU is lost|fallen off the bus|device(?:s)? (?:is|was) lost|cudaErrorDevicesUnavailable(?!.)"),
        ),
        (
            rule(
                "gpu-illegal-access",
                0.88,
                r"illegal memory access|misaligned address|MEMORY_APERTURE_VIOLATION|Memory access fault by GPU|CUDA_ERROR_ILLEGAL_ADDRESS|cudaErrorIllegalAddress|cuda runtime error \((?:77|700)\)|CUDA error:? (?:code )?=? ?(?:77|700)\b|invalid address space",
            ),
            rule(
                "gpu-illegal-access",
                0.7,
                r"unspecified launch failure|LAUNCH_FAILED|cudaErrorLaunchFailure|illegal instruction was encountered",
            ),
            rule(
                "gpu-illegal-access",
                0.4,
                r"device-side assert|CU(?:DNN|BLAS)_STATUS_(?:EXECUTION_FAILED|MAPPING_ERROR)",
            ),
            rule(
                "gpu-memory-held-by-others",
                0.82,
                r"all CUDA-capable devices are busy|exclusive[- ]process|CUDA-capable device\(s\) is/are busy|"
                + IN_USE,
            ),
            rule("gpu-memory-held-by-others", 0.53, r"Blas \w+ launch failed|StreamExecutor without BLAS support"),
            rule(
                "gpu-not-used",
                0.6,
                r"You requested gpu: |no visible CUDA devices|No supported gpu backend found|GPUAccelerator`? can not run|only supports NHWC on device type CPU|No OpKernel was registered to support Op 'Cudnn|Unable to initialize backend '(?:cuda|gpu)'|explicitly assigned to \S{0,60}GPU:\d+ but available devices are|could not satisfy explicit device specification '\S{0,60}GPU",
            ),
            rule(
                "gpu-not-used",
                0.5,
                r"No CUDA GPUs are available|No visible GPU devices|no CUDA-capable device|CUDA_ERROR_NO_DEVICE|Unknown backend:? '?(?:gpu|cuda)",
            ),
        ),
    )
)
LINES: tuple[Rule, ...] = flatten(
    (
        rules("gpu-memory-held-by-others", (0.82, IN_USE)),
        rules(
            "cuda-library-missing",
            (0.93, r"libdevice (?:not found|is required by)|Can't find libdevice"),
            (
                0.86,
                r"Cannot dlopen some GPU libraries|Could not load library (?:lib\w+|"
                + CUDA_LIBRARY
                + r")|Unable to load CUDA/cuDNN",
            ),
            (0.94, r"could not find cudnn\w+ in .{0,40}DSO"),
            (0.62, r"Couldn't open CUDA library libcu\w+|Unable to load cu\w+ DSO"),
            (0.93, r"ImportError: " + CUDA_LIBRARY),
            (0.68, r"Failed to find CUDA library|WARN .{0,80}\blibcuda\.so\S{0,4}: cannot open shared object"),
            (
                0.55,
                r"Could not load dynamic library '?"
                + CUDA_LIBRARY
                + r"(?<!libnvinfer)(?<!libnvinfer_plugin)|Could not locate cudnn\w+|Unable to load any of \{?libcu",
            ),
        ),
        rules("gpu-driver-too-old", (0.9, TOO_OLD)),
        rules("gpu-architecture-unsupported", (0.85, ARCHITECTURE)),
        rules(
            "gpu-not-used",
            (0.88, r"GPU available: True.{0,20}used: False"),
            (
                0.6,
                r"but CUDA is not available|Num GPUs Available: {1,3}0\b|cuda\.is_available(?:\(\))? is False|\b[Nn]o (?:\w+ )?GPUs? (?:was |were |is |are )?(?:found|detected|available)\b(?!.{0,20}falling)",
            ),
            (0.85, r"An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed"),
            (
                0.42,
                r"No GPU/TPU found, falling back to CPU|GPU will not be used|failed call to cuInit|kernel driver does not appear to be running|Skipping registering GPU devices|device is set to cpu although",
            ),
        ),
        rules("gpu-hardware-fault", (0.93, r"uncorrectable (?:ECC|NVLink) error|Row Remapper|DBE \(double bit")),
        rules(
            "gpu-lost",
            (0.97, r"fallen off the bus|GPU is lost"),
            (0.8, r"Unable to determine the device handle for GPU"),
            (0.7, r"NVRM: .{0,80}(?:RmInitAdapter failed|Cannot attach gpu|GPU is not responding)"),
        ),
        rules(
            "gpu-illegal-access",
            (
                0.85,
                r"illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS|MEMORY_APERTURE_VIOLATION|Memory access fault by GPU",
            ),
            (0.6, r"unspecified launch failure|CUDA_ERROR_LAUNCH_FAILED"),
        ),
        rules(
            "gpu-overheating",
            (
                0.85,
                r"(?:HW|SW) Thermal Slowdown\s*:? *Active|GPU.{0,60}(?:overheat|temperature.{0,40}(?:exceed|above|over the|slowdown|shutdown))|thermal (?:throttl|slowdown|violation).{0,30}GPU",
            ),
        ),
        rules(
            "gpu-power-limited",
            (
                0.8,
                r"HW Power Brake Slowdown\s*:? *Active|(?:SW )?Power Cap\s*:? *Active|power limit.{0,40}(?:throttl|reached)",
            ),
        ),
        rules(
            "cpu-overheating",
            (
                0.85,
                r"temperature above threshold, cpu clock (?:is )?throttled|Processor \d+ heated above trip temperature|CPU \d+ THERMAL EVENT|thermal thermal_zone\d+: critical temperature reached|System Overheating|CPU\d*:? .{0,30}(?:overheat|thermal throttl)",
            ),
        ),
    )
)

XID = re.compile(r"NVRM: Xid \((?P<card>[^)]{1,60})\): (?P<number>\d{1,3}),?(?P<rest>.{0,120})")
XIDS: dict[int, tuple[str, float, str]] = {
    **{n: ("gpu-illegal-access", 0.82, "a kernel used memory it may not") for n in (13, 31, 43, 123)},
    **{n: ("gpu-hardware-fault", 0.93, "uncorrectable memory error (ECC)") for n in (48, 94, 95)},
    **{n: ("gpu-hardware-fault", 0.88, "memory rows or pages had to be retired or remapped") for n in (63, 64)},
    **{
        n: ("gpu-hardware-fault", 0.85, "the card's own controller failed")
        for n in (32, 38, 61, 62, 69, 109, 119, 120, 140, 143, 149)
    },
    74: ("gpu-hardware-fault", 0.88, "NVLink error"),
    92: ("gpu-hardware-fault", 0.75, "many single-bit memory errors"),
    79: ("gpu-lost", 0.97, "the card has fallen off the bus"),
    45: ("", 0.0, "clean-up after another error"),
}


def read_xid(text: str) -> Finding | None:
    """The driver's numbered messages in the kernel's log."""
    found = XID.search(text)
    known = XIDS.get(int(found["number"])) if found else None
    if found is None or known is None or not known[0]:
        return None
    quoted = f"Xid {found['number']} on {found['card']}: {known[2]}"
    return Finding(known[0], known[1], (Evidence(f"kernel log: {quoted}", "kernel-log"),), {"card": found["card"]})


HAD = re.compile(r"Total memory: ?(?P<total>[\d.]+)GiB\s+Free memory: ?(?P<free>[\d.]+)(?P<unit>[MG])iB")
HAD_LATER = re.compile(r"Created (?:TensorFlow )?device .{0,80}GPU:\d+ with (?P<free>\d+) MB memory")

# What TensorFlow's allocator was given of the card when it started; it takes nearly all that is free.
POOL = re.compile(r"^Limit: {1,40}(?P<limit>\d{1,15})\s+InUse: ", re.MULTILINE)
SMALL_POOL = 512 << 20


REFUSED = re.compile(r"failed to alloc(?:ate)? ([\d.]+[KMG]i?B?)\b.{0,40} from device: CUDA_ERROR_OUT_OF_MEMORY")
STEP = re.compile(r"OOM when allocating|ran out of memory|ResourceExhausted|RESOURCE_EXHAUSTED|\bEpoch \d|\bloss\b")


def was_taken_before(text: str) -> str:
    """What was free when the framework looked at the card first; empty where that was most of it."""
    for found in HAD.finditer(text):
        free = float(found["free"]) / (1 if found["unit"] == "G" else 1024)
        if free < 0.3 * float(found["total"]):
            return f"at the start {found['free']} {found['unit']}iB of {found['total']} GiB were free"
    for found in HAD_LATER.finditer(text):
        if int(found["free"]) < 1024:
            return f"at the start only {found['free']} MB of the card could be had"
    for found in POOL.finditer(text):
        if int(found["limit"]) < SMALL_POOL:
            return f"TensorFlow could have only {int(found['limit']) >> 20} MiB of the card"
    return ""


def was_refused_its_share(text: str) -> str:
    """The driver refused what TensorFlow takes at its start, and no tensor of the script's was refused."""
    found = REFUSED.search(text)
    return f"the driver could not give the {found[1]} it had said were free" if found and not STEP.search(text) else ""
