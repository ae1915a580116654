from __future__ import annotations

from holdfast.causes.form import KERAS, TORCH, CauseRecord, jax, keras, near, rule, says, shell, torch

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
            says(
                "You requested gpu: ",
                (
                    "lightning 2.6.6",
                    "MisconfigurationException: You requested gpu: [0, 1]\n But your machine only has: [0]",
                ),
            ),
            says(
                "no visible CUDA devices",
                (
                    "lightning 2.6.6",
                    "ValueError: You requested to find cuda:0 devices but there are no visible CUDA devices on this machine.",
                ),
            ),
            says(
                "No supported gpu backend found", ("lightning 2.6.6", "RuntimeError: No supported gpu backend found!")
            ),
            says(
                "(?:GPU|CUDA)Accelerator`? can not run",
                (
                    "lightning 2.6.6",
                    "MisconfigurationException: `CUDAAccelerator` can not run on your system since the accelerator is not available. The following accelerator(s) is available and can be passed into `accelerator` argument of `Trainer`: ['cpu'].",
                ),
            ),
            says(
                "only supports NHWC on device type CPU",
                (
                    "tensorflow 2.21.0 without oneDNN",
                    "InvalidArgumentError: {{function_node __wrapped__MaxPool_device_/job:localhost/replica:0/task:0/device:CPU:0}} Default MaxPoolingOp only supports NHWC on device type CPU [Op:MaxPool] name: ",
                ),
            ),
            says(
                "No OpKernel was registered to support Op 'Cudnn",
                (
                    "tensorflow 2.21.0",
                    'InvalidArgumentError: No OpKernel was registered to support Op \'CudnnRNN\' used by {{node CudnnRNN}} with these attrs: [rnn_mode="lstm", direction="unidirectional", seed=0, T=DT_FLOAT, dropout=0, is_training=true, input_mode="linear_input", seed2=0]\nRegistered devices: [CPU]\nRegistered kernels:\n  <no registered kernels>\n\n\t [[CudnnRNN]]',
                ),
            ),
            says(
                "Unable to initialize backend '(?:cuda|gpu)'",
                (
                    "jax 0.4.13",
                    "RuntimeError: Unable to initialize backend 'cuda': module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig' (set JAX_PLATFORMS='' to automatically choose an available backend)",
                ),
            ),
            says(
                r"explicitly assigned to \S{0,60}GPU:\d+ but available devices are",
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: Cannot assign a device for operation MatMul: {{node MatMul}} was explicitly assigned to /device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device specification refers to a valid device. The requested device appears to be a GPU, but CUDA is not enabled.\n\t [[MatMul]]",
                ),
            ),
            says(
                r"could not satisfy (?:explicit )?device specification '\S{0,60}GPU",
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: Could not satisfy device specification '/job:localhost/replica:0/task:0/device:GPU:0'. enable_soft_placement=0. Supported device types [CPU].",
                ),
            ),
            says(
                r"Unable to find any devices for spec \S{0,60}GPU",
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: Unable to find any devices for spec /device:GPU:0 [Op:__inference_h_22]",
                ),
            ),
        ),
        rule(
            0.5,
            says("No CUDA GPUs are available", ("torch 2.13.0", "RuntimeError: No CUDA GPUs are available")),
            says(
                "No visible GPU devices",
                ("jax 0.4.35", "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: No visible GPU devices."),
            ),
            says(
                "no CUDA-capable device",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: no CUDA-capable device is detected"),
            ),
            says(
                "CUDA_ERROR_NO_DEVICE",
                (
                    "numba 0.56",
                    "numba.cuda.cudadrv.error.CudaSupportError: Error at driver init: Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)",
                ),
            ),
            says(
                "Unknown backend:? '?(?:gpu|cuda)",
                (
                    "jax 0.10.2",
                    "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms present are: cpu",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.88,
            says(
                "GPU available: True.{0,20}used: False", ("lightning 2.6.6", "GPU available: True (cuda), used: False")
            ),
        ),
        rule(
            0.6,
            says(
                "but CUDA is not available",
                (
                    "torch 2.13.0",
                    "/venv/lib/python3.11/site-packages/torch/cuda/amp/grad_scaler.py:31: UserWarning: torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                ),
            ),
            says(
                r"Num GPUs Available: {1,3}0\b",
                ("TensorFlow's guide, tensorflow 2.21.0", "Num GPUs Available:  0"),
                near("TensorFlow's guide, tensorflow 2.21.0", "Num GPUs Available:  1"),
            ),
            says(
                r"\b[Nn]o (?:\w+ )?GPUs? (?:was |were |is |are )?(?:found|detected|available)\b(?!.{0,20}falling)",
                ("tensorflow 2.21.0", "Enabled NCCL communication but no GPUs detected/specified."),
            ),
        ),
        rule(
            0.85,
            says(
                "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed",
                (
                    "jax 0.10.2",
                    "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to",
                ),
            ),
        ),
        rule(
            0.42,
            says(
                "No GPU/TPU found, falling back to CPU",
                (
                    "jax 0.3",
                    "No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)",
                ),
            ),
            says(
                "GPU will not be used",
                (
                    "tensorflow 2.21.0",
                    "TensorFlow GPU support is not available on native Windows for TensorFlow >= 2.11. Even if CUDA/cuDNN are installed, GPU will not be used. Please use WSL2 or the TensorFlow-DirectML plugin.",
                ),
            ),
            says(
                "failed call to cuInit",
                (
                    "tensorflow 1.13 log",
                    "2019-03-18 19:42:50.907401: E tensorflow/stream_executor/cuda/cuda_driver.cc:300] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
                ),
            ),
            says(
                "kernel driver does not appear to be running",
                (
                    "xla 2026-08-22",
                    "kernel driver does not appear to be running on this host (node1): /proc/driver/nvidia/version does not exist",
                ),
            ),
            says("Skipping registering GPU devices", ("tensorflow 2.3 log", "Skipping registering GPU devices...")),
        ),
    ),
)
