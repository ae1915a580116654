from __future__ import annotations

from holdfast.causes.form import TORCH, CauseRecord, rule, says, shell

SEE_DRIVER = shell("See driver and card", "nvidia-smi")
TOO_OLD = (
    says(
        "NVIDIA driver on your system is too old",
        (
            "torch 2.15.0",
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver.",
        ),
    ),
    says(
        "driver version is insufficient",
        (
            "torch 2.13.0, CUDA runtime 12.9.79",
            "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        ),
    ),
    says(
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        (
            "numba 0.59",
            "LinkerError: [222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION\nptxas application ptx input, line 9; fatal   : Unsupported .version 8.4; current version is '8.3'",
        ),
    ),
    says(
        "PTX was compiled with an unsupported toolchain",
        (
            "torch 2.13.0, CUDA runtime 12.9.79",
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        ),
    ),
    says(
        "compatibility was attempted on non supported HW",
        (
            "torch 2.13.0, CUDA runtime 12.9.79",
            "RuntimeError: CUDA error: forward compatibility was attempted on non supported HW",
        ),
    ),
    says(
        "caused by (?:a )?stale driver",
        ("xla 2026-08-22", "cuLinkAddData fails. This is usually caused by stale driver version."),
    ),
    says(
        "unsupported display driver",
        (
            "torch 2.13.0, CUDA runtime 12.9.79",
            "RuntimeError: CUDA error: system has unsupported display driver / cuda driver combination",
        ),
    ),
    says(
        "does not match DSO version",
        (
            "tensorflow 2.6",
            "2021-09-13 23:57:29.694695: E tensorflow/stream_executor/cuda/cuda_diagnostics.cc:306] kernel version 460.56.0 does not match DSO version 470.57.2 -- cannot find working devices in this configuration",
        ),
    ),
    says(
        "Driver/library version mismatch", ("nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch")
    ),
)
CAUSE = CauseRecord(
    id="gpu-driver-too-old",
    family="gpu",
    title="The GPU driver does not fit the CUDA libraries",
    meaning="The framework was built for a newer CUDA than the driver offers, or a driver update is not yet active. A newer driver, or a build for an older CUDA, mends it.",
    sure="The two versions in the message.",
    of_the_installation=True,
    recipes=(
        SEE_DRIVER,
        shell(
            "A build for an older CUDA",
            "pip install torch --index-url https://download.pytorch.org/whl/cu118",
            TORCH,
        ),
        shell("After a driver update", "sudo reboot"),
    ),
    exceptions=(rule(0.95, *TOO_OLD),),
    lines=(rule(0.9, *TOO_OLD),),
    last_frames=((0.52, r"torch\._C\._cuda_init\("),),
)
