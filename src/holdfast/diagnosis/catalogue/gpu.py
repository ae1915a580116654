"""GPU, driver, and the libraries between."""

from __future__ import annotations

from holdfast.diagnosis.catalogue.recipe import JAX, KERAS, TORCH, Entry, jax, keras, python, shell, torch, words

VERSIONS = shell("See driver and card", "nvidia-smi")
COOLER = (shell("See clocks, temperature and why they are held", "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"),)
ENTRIES: dict[str, Entry] = {
    "gpu-driver-too-old": Entry(
        "The GPU driver does not fit the CUDA libraries",
        "The framework was built for a newer CUDA than the driver offers, or a driver update is not yet active. A newer driver, or a build for an older CUDA, mends it.",
        "The two versions in the message.",
        (
            VERSIONS,
            shell(
                "A build for an older CUDA",
                "pip install torch --index-url https://download.pytorch.org/whl/cu118",
                TORCH,
            ),
            shell("After a driver update", "sudo reboot"),
        ),
    ),
    "cuda-library-missing": Entry(
        "A CUDA library is not found",
        "The framework cannot load a library of CUDA or cuDNN, or was installed without GPU support. The packages that bring them along are the simplest way.",
        "The library the message names.",
        (
            shell("The package with its CUDA libraries", "pip install 'tensorflow[and-cuda]'", KERAS),
            shell("The package with its CUDA libraries", "pip install -U 'jax[cuda12]'", JAX),
            shell("The package with its CUDA libraries", "pip install --force-reinstall torch", TORCH),
            shell("libdevice: say where CUDA is", "export XLA_FLAGS=--xla_gpu_cuda_data_dir=/usr/local/cuda"),
        ),
    ),
    "gpu-architecture-unsupported": Entry(
        "The build has no code for this GPU",
        "The framework or an extension was built for other GPU generations. A build that names this one in its list is needed.",
        "The card's compute capability against the list the build was made for.",
        (
            torch("See what the build was made for", "print(torch.cuda.get_arch_list(), torch.version.cuda)"),
            shell("A current build", "pip install --force-reinstall torch"),
            shell(
                "Build an extension for this card", "TORCH_CUDA_ARCH_LIST=8.6 pip install --no-binary :all: EXTENSION"
            ),
        ),
    ),
    "gpu-not-used": Entry(
        "The GPU is not used",
        "The model trains on the CPU although a GPU is there. The framework does not see it, or was not told to use it.",
        "The devices the framework sees against those the driver has.",
        (
            torch("Move model and batches to it", 'model.to("cuda"); x, y = x.to("cuda"), y.to("cuda")'),
            shell(
                "See what the framework can use", 'python -c "import torch; print(torch.cuda.is_available())"', TORCH
            ),
            keras("See what the framework can use", 'print(tf.config.list_physical_devices("GPU"))'),
            jax("See what the framework can use", "print(jax.devices())"),
            shell("Install the build with GPU support", "pip install 'tensorflow[and-cuda]'", KERAS),
        ),
    ),
    "gpu-hardware-fault": Entry(
        "The GPU has a hardware fault",
        "Its memory or its own controller reported an error that software does not cause. It may work again after a reset; if it comes back, the card has to go.",
        "The driver's Xid number in the kernel's log, or the error counters.",
        (
            shell("Look at the counters", "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT"),
            shell("Reset the card, with nothing running on it", "sudo nvidia-smi --gpu-reset -i 0"),
            shell("Test it", "dcgmi diag -r 3"),
        ),
    ),
    "gpu-lost": Entry(
        "The GPU fell off the bus",
        "The driver cannot reach the card any more. Power, heat, the riser or the slot are the usual reasons; only a reboot brings it back.",
        "Xid 79, or the driver says that the GPU is lost.",
        (
            shell("See what the kernel says", "dmesg | grep -iE 'xid|nvrm|pcie' | tail -n 20"),
            shell("Draw less power", "sudo nvidia-smi -pl 250"),
        ),
    ),
    "gpu-illegal-access": Entry(
        "A GPU kernel touched memory it may not",
        "An index in a kernel was wrong, in the script's data or in an extension. The line shown is often not the one, since kernels run later.",
        "CUDA error 700 or an assertion, at the line that CUDA_LAUNCH_BLOCKING=1 shows.",
        (
            shell("Get the real line", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
            shell("Find the access", "compute-sanitizer --tool memcheck python train.py"),
            words("Run one step on the CPU", "it names a wrong index in plain words"),
        ),
    ),
    "gpu-overheating": Entry(
        "The GPU is close to its temperature limit",
        "It lowers its clocks to stay below it. Steps take longer until it cools down.",
        "The driver's throttle reason, and the temperature.",
        (*COOLER, shell("Lower the power limit", "sudo nvidia-smi -pl 300")),
    ),
    "gpu-power-limited": Entry(
        "The GPU is held down by its power limit",
        "It lowers its clocks because it may draw no more. Training goes on, more slowly.",
        "The driver's throttle reason, and power at its limit.",
        (*COOLER, shell("Raise the limit, if the supply allows", "sudo nvidia-smi -pl 350")),
    ),
    "cpu-overheating": Entry(
        "The CPU is close to its temperature limit",
        "It lowers its clocks to stay below it. Preparing the data takes longer.",
        "The sensor at its limit, or the kernel says so.",
        (
            shell("Use fewer threads", "OMP_NUM_THREADS=4 python train.py"),
            python("Fewer at work", "os.sched_setaffinity(0, range(os.cpu_count() // 2))"),
        ),
    ),
}
