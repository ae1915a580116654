from __future__ import annotations

from holdfast.causes.form import JAX, CauseRecord, keras, rule, says, shell

# One process at a time may have a TPU.
IN_USE = r"(?:TPU|libtpu\S{0,4}|accelerator)s? (?:is |are )?already in used? by"
CAUSE = CauseRecord(
    id="gpu-memory-held-by-others",
    family="memory",
    title="Another process holds the GPU's memory",
    meaning="The card was mostly taken before this run asked for any. A notebook, an earlier run or a colleague may hold it.",
    sure="The numbers in the error, or what was free at the start, leave no room that this process took itself.",
    says_more_than=("gpu-memory-exhausted", "gpu-memory-fragmented"),
    recipes=(
        shell("See who holds the card", "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"),
        shell("Use another card", "CUDA_VISIBLE_DEVICES=1 python train.py"),
        keras(
            "Take memory as needed, so that two can share a card",
            'for gpu in tf.config.list_physical_devices("GPU"):\n    tf.config.experimental.set_memory_growth(gpu, True)',
        ),
        shell("Do not take it all at once", "XLA_PYTHON_CLIENT_PREALLOCATE=false python train.py", JAX),
    ),
    exceptions=(
        rule(
            0.42,
            says(
                "CU(?:BLAS|DNN)_STATUS_NOT_INITIALIZED",
                (
                    "torch 1.9",
                    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
                ),
            ),
            says(
                "Failed to get convolution alg",
                (
                    "tensorflow 1.13",
                    "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize, so try looking to see if a warning log message was printed above.",
                ),
            ),
        ),
        rule(
            0.82,
            says(
                "all CUDA-capable devices are busy",
                (
                    "torch 1.8, CUDA runtime 10",
                    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
                ),
            ),
            says(
                r"CUDA-capable device\(s\) is/are busy",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
                ),
            ),
            says(IN_USE, ("jax with libtpu", "ABORTED: The TPU is already in use by process with pid 23472.")),
        ),
        rule(
            0.53,
            says(
                r"Blas \w+ launch failed",
                (
                    "tensorflow 1.12",
                    "InternalError: Blas GEMM launch failed : a.shape=(10, 9), b.shape=(9, 64), m=10, n=64, k=9",
                ),
            ),
            says(
                "StreamExecutor without BLAS support",
                (
                    "tensorflow 2.9",
                    "InternalError: Attempting to perform BLAS operation using StreamExecutor without BLAS support [Op:MatMul]",
                ),
            ),
        ),
    ),
    lines=(
        rule(0.82, says(IN_USE, ("jax with libtpu", "ABORTED: The TPU is already in use by process with pid 23472."))),
    ),
)
