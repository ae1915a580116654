from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says, torch

CAUSE = CauseRecord(
    id="cuda-in-forked-worker",
    family="process",
    title="CUDA was used before the process forked",
    meaning="A forked child cannot use the parent's CUDA. Either the children are started afresh, or CUDA waits until after the fork.",
    sure="The message itself.",
    recipes=(
        torch("Start workers afresh", 'torch.multiprocessing.set_start_method("spawn", force=True)'),
        torch("Keep tensors on the CPU in the data set", 'x = torch.tensor(row)  # .to("cuda") in the training loop'),
    ),
    exceptions=(
        rule(
            0.97,
            says(
                "re-initialize CUDA in forked",
                (
                    "torch 2.13.0",
                    "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
                ),
            ),
            says(
                "can't create new processes if CUDA is already initialized",
                (
                    "lightning 2.6.6",
                    "RuntimeError: Lightning can't create new processes if CUDA is already initialized. Did you manually call `torch.cuda.*` functions, have moved the model to the device, or allocated memory on the GPU any other way? Please remove any such calls, or change the selected strategy.",
                ),
            ),
        ),
        rule(
            0.75,
            says(
                "CUDA error: initialization error",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: initialization error"),
            ),
            says(
                r"cuda runtime error \(3\)",
                (
                    "torch 1.3",
                    "RuntimeError: cuda runtime error (3) : initialization error at /pytorch/aten/src/THC/THCGeneral.cpp:50",
                ),
            ),
            says(
                "CUDA_ERROR_NOT_INITIALIZED",
                (
                    "tensorflow 2.15 below tensorflow-datasets",
                    "InternalError: Failed call to cuDeviceGet: CUDA_ERROR_NOT_INITIALIZED: initialization error",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.35,
            says(
                r"os\.fork\(\) was called.{0,80}JAX is multithreaded",
                (
                    "jax 0.10.2",
                    "os.fork() was called. os.fork() is incompatible with multithreaded code, and JAX is multithreaded, so this will likely lead to a deadlock.",
                ),
            ),
        ),
    ),
)
