from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell, torch

ARCHITECTURE = (
    "HSA_STATUS_ERROR_INVALID_ISA",
    "hipErrorNoBinaryForGpu",
    "hipErrorInvalidDeviceFunction",
    r"Cannot read \S{0,200}TensileLibrary",
    "no kernel found to launch",
    "CUDNN_STATUS_ARCH_MISMATCH",
    "(?:device )?kernel image is invalid",
    "CUDA_ERROR_INVALID_IMAGE",
    "ptxas (?:too old|does not support CC)",
    "no kernel image is available",
    "is not compatible with the current PyTorch installation",
    "NoKernelImageForDevice",
    "NO_BINARY_FOR_GPU",
    "setup doesn't support bf16",
    "only supports? (?:Ampere|Hopper|Turing|Volta|Ada)",
    "minimum required Cuda capability",
    "no longer supports this GPU",
    "requires? (?:a )?(?:GPU with )?compute capability",
    "only supported on (?:GPUs|devices) with compute capability",
    "Unsupported gpu architecture",
    r"'sm_\d+' is not (?:defined|a recognized)",
    r"Expected is_sm\d+",
    "compute capability .{0,60}(?:too (?:low|old)|not supported|unsupported|at least)",
    "not supported on this (?:GPU )?architecture",
    "invalid device function",
)
CAUSE = CauseRecord(
    id="gpu-architecture-unsupported",
    family="gpu",
    title="The build has no code for this GPU",
    meaning="The framework or an extension was built for other GPU generations. A build that names this one in its list is needed.",
    sure="The card's compute capability against the list the build was made for.",
    of_the_installation=True,
    recipes=(
        torch("See what the build was made for", "print(torch.cuda.get_arch_list(), torch.version.cuda)"),
        shell("A current build", "pip install --force-reinstall torch"),
        shell("Build an extension for this card", "TORCH_CUDA_ARCH_LIST=8.6 pip install --no-binary :all: EXTENSION"),
    ),
    exceptions=(rule(0.95, *ARCHITECTURE),),
    lines=(rule(0.85, *ARCHITECTURE),),
)
