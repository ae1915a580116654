from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, jax, keras, near, rule, says, shell, torch
from holdfast.causes.shared.gpu_memory_words import GPU_WORDS
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
# The end of PyTorch's message, which is long enough to be cut.
ADVISED = "(?:max_split_size_mb|expandable_segments:True) to avoid fragmentation"
CAUSE = CauseRecord(
    id="gpu-memory-exhausted",
    family="memory",
    title="The GPU ran out of memory",
    meaning="One step needs more memory than the GPU has free. Batch size, sequence length and image size decide how much a step needs.",
    sure="The framework's own out-of-memory error, on a card that this process has nearly to itself.",
    restart=RestartAdvice(RestartKind.SMALLER_STEPS_ON_GPU, "ran out of GPU memory"),
    ran_out="gpu",
    recipes=(
        *BY_KIND,
        *ACCUMULATE,
        shell("See who holds the card", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv"),
    ),
    exceptions=(
        rule(
            0.6,
            says(
                "OOM when allocating",
                (
                    "tensorflow 1.13",
                    "ResourceExhaustedError: OOM when allocating tensor with shape[16,16,1440,1920] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
                ),
            ),
            says(
                "failed to allocate",
                (
                    "tensorflow 2.10",
                    "ResourceExhaustedError: {{function_node __wrapped__Cast_device_/job:localhost/replica:0/task:0/device:GPU:0}} failed to allocate memory [Op:Cast]",
                ),
            ),
            types="ResourceExhaustedError",
        ),
        rule(0.93, *GPU_WORDS),
        rule(
            0.92,
            says(
                r"OOM when allocating[\s\S]{0,300}(?:device:GPU|GPU_\d|/gpu:\d)",
                (
                    "tensorflow 1.13",
                    "ResourceExhaustedError: OOM when allocating tensor with shape[16,16,1440,1920] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
                ),
            ),
        ),
        rule(
            0.9,
            says(
                r"(?:device:GPU|GPU_\d)[\s\S]{0,300}(?:failed to allocate|out of memory)",
                (
                    "tensorflow 2.10",
                    "ResourceExhaustedError: {{function_node __wrapped__Cast_device_/job:localhost/replica:0/task:0/device:GPU:0}} failed to allocate memory [Op:Cast]",
                ),
            ),
        ),
        rule(
            0.88,
            says(
                "RESOURCE[_ ]EXHAUSTED: (?:Out of memory|Failed to allocate request|.{0,80}trying to allocate)",
                (
                    "a log shown in public",
                    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.",
                ),
            ),
        ),
        rule(
            0.85,
            says(
                r"RESOURCE_EXHAUSTED[\s\S]{0,300}(?:hbm|vmem|allocat)",
                (
                    "a log shown in public",
                    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.",
                ),
            ),
            says(
                "out of memory in memory space (?:hbm|vmem)",
                (
                    "jax on a TPU",
                    "ValueError: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 16.29G of 15.75G hbm. Exceeded hbm capacity by 558.95M.",
                ),
            ),
        ),
        # XLA's own allocator
        rule(
            0.85,
            says(
                "Out of memory",
                (
                    "tensorflow 2.15 with XLA",
                    "ResourceExhaustedError: Out of memory while trying to allocate 841830367232 bytes.",
                ),
            ),
            types="ResourceExhaustedError",
        ),
        rule(
            0.8,
            says(
                r"Out of memory (?:while trying to allocate|allocating) \d+ bytes",
                (
                    "a log shown in public",
                    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.",
                ),
            ),
            types="ResourceExhaustedError XlaRuntimeError JaxRuntimeError",
        ),
        rule(
            0.82,
            says(
                "Dst tensor is not initialized",
                (
                    "tensorflow 2.5",
                    "InternalError: Failed copying input tensor from /job:localhost/replica:0/task:0/device:CPU:0 to /job:localhost/replica:0/task:0/device:GPU:0 in order to run Equal: Dst tensor is not initialized. [Op:Equal]",
                ),
            ),
        ),
        rule(
            0.72,
            says(
                ADVISED,
                (
                    "torch 2.4",
                    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
                ),
            ),
        ),
        rule(
            0.66,
            says(
                "Unable to find a valid cuDNN algorithm",
                ("torch 1.13", "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution"),
            ),
            says(
                "was unable to find an engine to execute",
                ("torch 1.13", "RuntimeError: GET was unable to find an engine to execute this computation"),
            ),
        ),
        rule(
            0.75,
            says(
                "cublas runtime error : resource allocation failed",
                (
                    "torch 1.0",
                    "RuntimeError: cublas runtime error : resource allocation failed at /pytorch/aten/src/THC/THCGeneral.cpp:250",
                ),
            ),
            says(
                "CUBLAS_STATUS_ALLOC_FAILED",
                (
                    "torch 1.8",
                    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                ),
            ),
            says("CUDNN_STATUS_ALLOC_FAILED", ("torch 1.8", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED")),
            says(
                "CUSOLVER_STATUS_ALLOC_FAILED",
                (
                    "torch 1.13",
                    "RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
                ),
            ),
        ),
        rule(
            0.55,
            says(
                "^(?!java)",
                (
                    "cupy 13",
                    "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 800,000,000,000 bytes (allocated so far: 0 bytes).",
                ),
            ),
            types="OutOfMemoryError OutOfMemory",
        ),
        rule(
            0.8,
            says(
                "^torch",
                (
                    "torch 2.6 with cudaMallocAsync",
                    "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 4.86 GiB\nRequested               : 557.81 MiB\nDevice limit            : 8.00 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
                ),
            ),
            types="OutOfMemoryError OutOfMemory",
        ),
        # no room for its workspace
        rule(
            0.53,
            says(
                "CUBLAS_STATUS_NOT_INITIALIZED.{0,40}cublasCreate",
                (
                    "torch 1.9",
                    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
                ),
            ),
        ),
        rule(
            0.45,
            says(
                "CU(?:BLAS|DNN)_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)",
                (
                    "torch 1.9",
                    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
                ),
            ),
            says(
                "create cu(?:blas|dnn) handle",
                ("tensorflow 1.12", "could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED"),
            ),
        ),
        # most often mended by letting the memory grow
        rule(
            0.52,
            says(
                "Failed to get convolution algorithm",
                (
                    "tensorflow 1.13",
                    "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize, so try looking to see if a warning log message was printed above.",
                ),
            ),
        ),
        rule(
            0.82,
            says(
                r"(?:GPU|CUDA|cuda|device|HBM|VRAM)\b.{0,60}\b(?:out of memory|OOM\b|insufficient memory|memory exhausted)",
                (
                    "torch 0.3",
                    "RuntimeError: cuda runtime error (2) : out of memory at /b/wheel/pytorch-src/torch/lib/THC/generic/THCStorage.cu:66",
                ),
            ),
        ),
    ),
    lines=(
        rule(0.85, *GPU_WORDS),
        rule(
            0.7,
            says(
                ADVISED,
                (
                    "torch 2.4",
                    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
                ),
            ),
        ),
        rule(
            0.62,
            says(
                r"^(?:E\s+)?(?:.{0,80}: )?OOM when allocating tensor(?!.{0,200}(?:device:CPU|mklcpu))",
                ("tensorflow 2.21.0", "OOM when allocating tensor with shape"),
            ),
        ),
        rule(
            0.9,
            says(
                "OP_REQUIRES failed.{0,160}OOM when allocating",
                (
                    "tensorflow 1.13",
                    "2019-02-26 01:03:18.634094: W tensorflow/core/framework/op_kernel.cc:1318] OP_REQUIRES failed at conv_ops.cc:398 : Resource exhausted: OOM when allocating tensor with shape[1,64,960,960] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
                ),
            ),
        ),
        rule(
            0.7,
            says(
                r"Allocator \(GPU_\d_bfc\) ran out of memory trying to allocate (?P<wanted>[\d.]+\w+)(?!.{0,160}not a failure)",
                (
                    "jaxlib 0.7",
                    "2026-05-02 11:40:12.113042: W external/xla/xla/tsl/framework/bfc_allocator.cc:514] Allocator (GPU_0_bfc) ran out of memory trying to allocate 73.30GiB (rounded to 78702055168)requested by op ",
                ),
                near(
                    "tensorflow 2.6",
                    "2021-11-05 09:30:48.424570: W tensorflow/core/common_runtime/bfc_allocator.cc:271] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.55GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.",
                ),
            ),
        ),
        rule(
            0.8,
            says(
                "RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)",
                (
                    "a log shown in public",
                    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.",
                ),
            ),
            says(
                "RESOURCE_EXHAUSTED: Attempting to (?:reserve|allocate) ",
                (
                    "torch_xla 1.11 on a TPU",
                    "RESOURCE_EXHAUSTED: Attempting to reserve 6.48G at the bottom of memory. That was not possible. There are 6.78G free, 0B reserved, and 3.33G reservable.",
                ),
            ),
        ),
        # XLA's, without its status
        rule(
            0.66,
            says(
                r"Out of memory while trying to allocate (?P<wanted>\d+ bytes)",
                (
                    "a log shown in public",
                    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.",
                ),
            ),
        ),
        rule(
            0.7,
            says(
                "CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED",
                (
                    "torch 1.8",
                    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                ),
            ),
        ),
        rule(
            0.8,
            says(
                "out of memory in memory space (?:hbm|vmem)",
                (
                    "jax on a TPU",
                    "ValueError: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 16.29G of 15.75G hbm. Exceeded hbm capacity by 558.95M.",
                ),
            ),
        ),
        rule(
            0.45,
            says(
                "CUDNN_STATUS_NOT_INITIALIZED", ("torch 1.8", "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")
            ),
            says(
                "Could not create cudnn handle",
                ("tensorflow 1.12", "could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED"),
            ),
            says(
                "failed to create cublas handle",
                (
                    "tensorflow 2.8",
                    "2022-04-30 15:59:47.401314: E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED",
                ),
            ),
        ),
    ),
)
