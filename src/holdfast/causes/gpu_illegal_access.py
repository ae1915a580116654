from __future__ import annotations

from holdfast.causes.form import CauseRecord, Xids, rule, says, shell, words

CAUSE = CauseRecord(
    id="gpu-illegal-access",
    family="gpu",
    title="A GPU kernel touched memory it may not",
    meaning="An index in a kernel was wrong, in the script's data or in an extension. The line shown is often not the one, since kernels run later.",
    sure="CUDA error 700 or an assertion, at the line that CUDA_LAUNCH_BLOCKING=1 shows.",
    recipes=(
        shell("Get the real line", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
        shell("Find the access", "compute-sanitizer --tool memcheck python train.py"),
        words("Run one step on the CPU", "it names a wrong index in plain words"),
    ),
    exceptions=(
        rule(
            0.88,
            says(
                "illegal memory access",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: an illegal memory access was encountered",
                ),
            ),
            says(
                "misaligned address",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: misaligned address"),
            ),
            says(
                "MEMORY_APERTURE_VIOLATION",
                (
                    "ROCR-Runtime rocm-test-09212024",
                    "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond",
                ),
            ),
            says(
                "Memory access fault by GPU",
                (
                    "ROCR-Runtime rocm-test-09212024",
                    "Memory access fault by GPU node-1 (Agent handle: 0x55d2c5c2f0e0) on address 0x7f3c2a600000. Reason: Page not present or supervisor privilege.",
                ),
            ),
            says("CUDA_ERROR_ILLEGAL_ADDRESS", ("cuda-samples v13.0", "CUDA_ERROR_ILLEGAL_ADDRESS")),
        ),
        rule(
            0.7,
            says(
                "unspecified launch failure",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: unspecified launch failure in prior launch",
                ),
            ),
            says("LAUNCH_FAILED", ("cuda-samples v13.0", "CUDA_ERROR_LAUNCH_FAILED")),
            says(
                "illegal instruction was encountered",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: an illegal instruction was encountered",
                ),
            ),
        ),
        rule(
            0.4,
            says(
                "device-side assert",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: device-side assert triggered"),
            ),
            says(
                "CU(?:DNN|BLAS)_STATUS_(?:EXECUTION_FAILED|MAPPING_ERROR)",
                (
                    "torch 1.9",
                    "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc)`",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.85,
            says(
                "illegal memory access was encountered",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: an illegal memory access was encountered",
                ),
            ),
            says("CUDA_ERROR_ILLEGAL_ADDRESS", ("cuda-samples v13.0", "CUDA_ERROR_ILLEGAL_ADDRESS")),
            says(
                "MEMORY_APERTURE_VIOLATION",
                (
                    "ROCR-Runtime rocm-test-09212024",
                    "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond",
                ),
            ),
            says(
                "Memory access fault by GPU",
                (
                    "ROCR-Runtime rocm-test-09212024",
                    "Memory access fault by GPU node-1 (Agent handle: 0x55d2c5c2f0e0) on address 0x7f3c2a600000. Reason: Page not present or supervisor privilege.",
                ),
            ),
        ),
        rule(
            0.6,
            says(
                "unspecified launch failure",
                (
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: unspecified launch failure in prior launch",
                ),
            ),
            says("CUDA_ERROR_LAUNCH_FAILED", ("cuda-samples v13.0", "CUDA_ERROR_LAUNCH_FAILED")),
        ),
    ),
    xids=(
        Xids((13, 31, 43), 0.82, "a kernel used memory it may not"),
        Xids((32, 69), 0.6, "the card was given a command that it does not take, by the job's own fault mostly"),
    ),
)
