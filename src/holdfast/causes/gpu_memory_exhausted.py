from __future__ import annotations

from holdfast.causes.form import CauseRecord, Restart, RestartKind, jax, keras, rule, shell, torch
from holdfast.causes.shared.recipes import BY_KIND

ACCUMULATE = (
    keras(
        "A smaller batch, with gradients accumulated to the old size",
        "keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)\n# and batch_size // 4",
    ),
    torch(
        "A smaller batch, with gradients accumulated to the old size",
        "(loss / 4).backward()\n# then optimizer.step() and zero_grad() every 4th batch",
    ),
    jax(
        "A smaller batch, with gradients accumulated to the old size",
        "optimizer = optax.MultiSteps(optax.adam(1e-3), every_k_schedule=4)",
    ),
)
GPU_WORDS = (
    "(?:CUDA|HIP|XPU|NPU|MPS backend|MUSA) out of memory",
    "CUDA error: out of memory",
    r"[Tt]ried to allocate [\d.]+ [KMGT]iB \(GPU \d",
    r"cuda runtime error \(2\)",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
    "cudaMalloc(?:Async)? (?:retry )?failed: out of memory",
    "hipErrorOutOfMemory",
    "CUDA driver error: out of memory",
    r"\bGPUs?\b(?!-?\d*: task).{0,40} out of memory",
    r"Cuda failure (?:\d+ )?'out of memory'",
    "Failed to CUDA (?:host )?[cm]alloc",
)
# The end of PyTorch's message, which is long enough to be cut.
ADVISED = "(?:max_split_size_mb|expandable_segments:True) to avoid fragmentation"
CAUSE = CauseRecord(
    id="gpu-memory-exhausted",
    family="memory",
    title="The GPU ran out of memory",
    meaning="One step needs more memory than the GPU has free. Batch size, sequence length and image size decide how much a step needs.",
    sure="The framework's own out-of-memory error, on a card that this process has nearly to itself.",
    restart=Restart(RestartKind.SMALLER_STEPS_ON_GPU, "ran out of GPU memory"),
    ran_out="gpu",
    recipes=(
        *BY_KIND,
        *ACCUMULATE,
        shell("See who holds the card", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"),
    ),
    exceptions=(
        rule(0.6, "OOM when allocating", "failed to allocate", types="ResourceExhaustedError"),
        rule(0.93, *GPU_WORDS),
        rule(0.92, r"OOM when allocating[\s\S]{0,300}(?:device:GPU|GPU_\d|/gpu:\d)"),
        rule(0.9, r"(?:device:GPU|GPU_\d)[\s\S]{0,300}(?:failed to allocate|out of memory)"),
        rule(0.88, "RESOURCE[_ ]EXHAUSTED: (?:Out of memory|Failed to allocate request|.{0,80}trying to allocate)"),
        rule(
            0.85, r"RESOURCE_EXHAUSTED[\s\S]{0,300}(?:hbm|vmem|allocat)", "out of memory in memory space (?:hbm|vmem)"
        ),
        # XLA's own allocator
        rule(0.85, "Out of memory", "trying to allocate", types="ResourceExhaustedError"),
        rule(
            0.8,
            r"Out of memory (?:while trying to allocate|allocating) \d+ bytes",
            types="ResourceExhaustedError XlaRuntimeError JaxRuntimeError",
        ),
        rule(0.82, "Dst tensor is not initialized"),
        rule(0.72, ADVISED),
        rule(0.66, "Unable to find a valid cuDNN algorithm", "was unable to find an engine to execute"),
        rule(
            0.75,
            "cublas runtime error : resource allocation failed",
            "CUBLAS_STATUS_ALLOC_FAILED",
            "CUDNN_STATUS_ALLOC_FAILED",
            "CUSOLVER_STATUS_ALLOC_FAILED",
        ),
        rule(0.55, "^(?!java)", types="OutOfMemoryError OutOfMemory"),
        rule(0.8, "CUDA", "GPU", "[Tt]ried to allocate", "^torch", types="OutOfMemoryError OutOfMemory"),
        # no room for its workspace
        rule(0.53, "CUBLAS_STATUS_NOT_INITIALIZED.{0,40}cublasCreate"),
        rule(0.45, "CU(?:BLAS|DNN)_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)", "create cu(?:blas|dnn) handle"),
        # most often mended by letting the memory grow
        rule(0.52, "Failed to get convolution algorithm"),
        rule(
            0.82,
            r"(?:GPU|CUDA|cuda|device|HBM|VRAM)\b.{0,60}\b(?:out of memory|OOM\b|insufficient memory|memory exhausted)",
        ),
    ),
    lines=(
        rule(0.85, *GPU_WORDS),
        rule(0.7, ADVISED),
        rule(0.62, r"^(?:E\s+)?(?:.{0,80}: )?OOM when allocating tensor(?!.{0,200}(?:device:CPU|mklcpu))"),
        rule(0.9, "OP_REQUIRES failed.{0,160}OOM when allocating"),
        rule(
            0.7,
            r"Allocator \(GPU_\d_bfc\) ran out of memory trying to allocate (?P<wanted>[\d.]+\w+)(?!.{0,160}not a failure)",
        ),
        rule(0.8, "RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)"),
        # XLA's, without its status
        rule(0.66, r"Out of memory while trying to allocate (?P<wanted>\d+ bytes)"),
        rule(0.7, "CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED"),
        rule(
            0.8,
            r"[Cc]ompil\w+ .{0,80}(?:unlikely to have|not) enough memory\b.{0,40}[Rr]equires",
            "out of memory in memory space (?:hbm|vmem)",
        ),
        rule(0.45, "CUDNN_STATUS_NOT_INITIALIZED", "Could not create cudnn handle", "failed to create cublas handle"),
    ),
)
