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
    says(
        "hipErrorNoBinaryForGpu",
        ("ROCm 5.1", '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"'),
    ),
    says(
        r"Cannot read \S{0,200}TensileLibrary",
        (
            "rocBLAS of ROCm 5.7",
            "rocBLAS error: Cannot read /opt/rocm-5.7.0/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1103",
        ),
    ),
    says("no kernel found to launch", ("torch 2.1", "RuntimeError: cutlassF: no kernel found to launch!")),
    says("CUDNN_STATUS_ARCH_MISMATCH", ("caffe 1.0", "CUDNN_STATUS_ARCH_MISMATCH")),
    says(
        "(?:device )?kernel image is invalid",
        ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: device kernel image is invalid"),
    ),
    says("CUDA_ERROR_INVALID_IMAGE", ("cuda-samples v13.0", "CUDA_ERROR_INVALID_IMAGE")),
    says(
        "no kernel image is available",
        ("a log shown in public", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ),
    says(
        "is not compatible with the current PyTorch installation",
        (
            "torch 2.13.0",
            "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\nIf you want to use the NVIDIA GeForce RTX 5090 GPU with PyTorch, please check the instructions at https://pytorch.org/get-started/locally/",
        ),
    ),
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
        ("flash-attn 2.5", "RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
    ),
    says(
        "minimum required Cuda capability",
        (
            "tensorflow 1.10 log",
            "I tensorflow/core/common_runtime/gpu/gpu_device.cc:948] Ignoring visible gpu device (device: 0, name: GeForce GTX 550 Ti, pci bus id: 0000:01:00.0) with Cuda compute capability 2.1. The minimum required Cuda capability is 3.0.",
        ),
    ),
    says(
        "no longer supports this GPU",
        (
            "torch 1.13",
            "    Found GPU0 NVIDIA GeForce GTX TITAN which is of cuda capability 3.5.\n    PyTorch no longer supports this GPU because it is too old.\n    The minimum cuda capability supported by this library is 3.7.",
        ),
    ),
    says(
        "requires? (?:a )?(?:GPU with )?compute capability",
        ("tensorflow 2.21.0", "StreamExecutor cuda device (0) requires compute capability '7.0' but is of '6.1'"),
    ),
    says(
        "supported (?:only )?(?:on|for) (?:GPUs|(?:CUDA )?devices) with compute capability",
        (
            "transformers 5.22.2",
            "ValueError: FP8 quantized models is only supported on GPUs with compute capability >= 9.0 (e.g H100)",
        ),
        (
            "torch 2.15.0",
            "RuntimeError: Sparse operations with CUDA tensors of BFloat16 type are not supported on GPUs with compute capability < 8.0 (current: 7.5)",
        ),
        near(
            "tensorflow 2.21.0",
            "Your GPUs will likely run quickly with dtype policy mixed_float16 as they all have compute capability of at least 7.0",
        ),
    ),
    says("Unsupported gpu architecture", ("xla 2026-08-22", "Unsupported GPU architecture for F8E4M3FN.")),
    says(
        r"'sm_\d+\w?' is not defined for option",
        ("ptxas with triton 3.5", "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"),
    ),
    says(
        r"Expected is_sm\d+",
        (
            "torch 2.0",
            "RuntimeError: Expected is_sm80 to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)",
        ),
    ),
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
