from __future__ import annotations

from holdfast.causes.form import CauseRecord, Xids, rule, shell, words

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
            "illegal memory access",
            "misaligned address",
            "MEMORY_APERTURE_VIOLATION",
            "Memory access fault by GPU",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "cudaErrorIllegalAddress",
            r"cuda runtime error \((?:77|700)\)",
            r"CUDA error:? (?:code )?=? ?(?:77|700)\b",
            "invalid address space",
        ),
        rule(
            0.7,
            "unspecified launch failure",
            "LAUNCH_FAILED",
            "cudaErrorLaunchFailure",
            "illegal instruction was encountered",
        ),
        rule(0.4, "device-side assert", "CU(?:DNN|BLAS)_STATUS_(?:EXECUTION_FAILED|MAPPING_ERROR)"),
    ),
    lines=(
        rule(
            0.85,
            "illegal memory access was encountered",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "MEMORY_APERTURE_VIOLATION",
            "Memory access fault by GPU",
        ),
        rule(0.6, "unspecified launch failure", "CUDA_ERROR_LAUNCH_FAILED"),
    ),
    xids=(Xids((13, 31, 43, 123), 0.82, "a kernel used memory it may not"),),
)
