from __future__ import annotations

from holdfast.causes.form import KERAS, TORCH, CauseRecord, jax, keras, rule, shell, torch

CAUSE = CauseRecord(
    id="gpu-not-used",
    family="gpu",
    title="The GPU is not used",
    meaning="The model trains on the CPU although a GPU is there. The framework does not see it, or was not told to use it.",
    sure="The devices the framework sees against those the driver has.",
    slows=True,
    of_the_installation=True,
    recipes=(
        torch("Move model and batches to it", 'model.to("cuda"); x, y = x.to("cuda"), y.to("cuda")'),
        shell("See what the framework can use", 'python -c "import torch; print(torch.cuda.is_available())"', TORCH),
        keras("See what the framework can use", 'print(tf.config.list_physical_devices("GPU"))'),
        jax("See what the framework can use", "print(jax.devices())"),
        shell("Install the build with GPU support", "pip install 'tensorflow[and-cuda]'", KERAS),
    ),
    exceptions=(
        rule(
            0.6,
            "You requested gpu: ",
            "no visible CUDA devices",
            "No supported gpu backend found",
            "GPUAccelerator`? can not run",
            "only supports NHWC on device type CPU",
            "No OpKernel was registered to support Op 'Cudnn",
            "Unable to initialize backend '(?:cuda|gpu)'",
            r"explicitly assigned to \S{0,60}GPU:\d+ but available devices are",
            r"could not satisfy explicit device specification '\S{0,60}GPU",
        ),
        rule(
            0.5,
            "No CUDA GPUs are available",
            "No visible GPU devices",
            "no CUDA-capable device",
            "CUDA_ERROR_NO_DEVICE",
            "Unknown backend:? '?(?:gpu|cuda)",
        ),
    ),
    lines=(
        rule(0.88, "GPU available: True.{0,20}used: False"),
        rule(
            0.6,
            "but CUDA is not available",
            r"Num GPUs Available: {1,3}0\b",
            r"cuda\.is_available(?:\(\))? is False",
            r"\b[Nn]o (?:\w+ )?GPUs? (?:was |were |is |are )?(?:found|detected|available)\b(?!.{0,20}falling)",
        ),
        rule(0.85, "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed"),
        rule(
            0.42,
            "No GPU/TPU found, falling back to CPU",
            "GPU will not be used",
            "failed call to cuInit",
            "kernel driver does not appear to be running",
            "Skipping registering GPU devices",
            "device is set to cpu although",
        ),
    ),
)
