from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, shell, torch

ARCHITECTURE = (
    says(
        "HSA_STATUS_ERROR_INVALID_ISA",
        (
            "ROCR-Runtime rocm-test-09212024",
            "HSA_STATUS_ERROR_INVALID_ISA_NAME: The instruction set architecture name is invalid.",
        ),
    ),
    "hipErrorNoBinaryForGpu",
    "hipErrorInvalidDeviceFunction",
    r"Cannot read \S{0,200}TensileLibrary",
    "no kernel found to launch",
    says("CUDNN_STATUS_ARCH_MISMATCH", ("caffe 1.0", "CUDNN_STATUS_ARCH_MISMATCH")),
    says(
        "(?:device )?kernel image is invalid",
        ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: device kernel image is invalid"),
    ),
    says("CUDA_ERROR_INVALID_IMAGE", ("cuda-samples v13.0", "CUDA_ERROR_INVALID_IMAGE")),
    "ptxas (?:too old|does not support CC)",
    says(
        "no kernel image is available",
        ("a log shown in public", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ),
    says(
        "is not compatible with the current PyTorch installation",
        (
            "torch 2.13.0",
            "3 with CUDA capability sm_3 is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities 3.\nIf you want to use the 3 GPU with PyTorch, please check the instructions at https://pytorch.org/get-started/locally/",
        ),
    ),
    "NoKernelImageForDevice",
    says("NO_BINARY_FOR_GPU", ("cuda-samples v13.0", "CUDA_ERROR_NO_BINARY_FOR_GPU")),
    says(
        "setup doesn't support bf16",
        (
            "transformers 5.22.2",
            "ValueError: Your setup doesn't support bf16/gpu. You need to assign use_cpu if you want to train the model on CPU.",
        ),
    ),
    says(
        r"only supports? (?:Ampere|Hopper|Turing|Volta|Ada)\b",
        near("torch 2.13.0", "NNAPI only supports adaptive_avg_pool2d with output size (1, 1)."),
    ),
    "minimum required Cuda capability",
    "no longer supports this GPU",
    says(
        "requires? (?:a )?(?:GPU with )?compute capability",
        ("tensorflow 2.21.0", "StreamExecutor cuda device (3) requires compute capability 'dense' but is of 'dense'"),
    ),
    says(
        "only supported on (?:GPUs|devices) with compute capability",
        (
            "transformers 5.22.2",
            "ValueError: FP8 quantized models is only supported on GPUs with compute capability >= 9.0 (e.g H100)",
        ),
    ),
    says("Unsupported gpu architecture", ("xla 2026-08-22", "Unsupported GPU architecture for F8E4M3FN.")),
    r"'sm_\d+' is not (?:defined|a recognized)",
    r"Expected is_sm\d+",
    says(
        "(?<! has )(?<! have )compute capability .{0,60}(?:too (?:low|old)|not supported|unsupported|at least)",
        near(
            "tensorflow 2.21.0",
            "Your GPUs will likely run quickly with dtype policy mixed_float16 as they all have compute capability of at least 7.0",
        ),
    ),
    "not supported on this (?:GPU )?architecture",
    says(
        "invalid device function",
        ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: invalid device function"),
    ),
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
