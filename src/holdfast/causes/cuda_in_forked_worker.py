from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, torch

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
            "re-initialize CUDA in forked",
            says(
                r"\bfork(?:ed)?\b.{0,60}CUDA",
                near(
                    "torch 2.13.0",
                    "All stages must have the same device type for RNG forking. Found device types: cuda, cpu",
                ),
            ),
            "CUDA.{0,80}'spawn' start method",
        ),
        rule(
            0.75,
            says(
                "CUDA error: initialization error",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: initialization error"),
            ),
            r"cuda runtime error \(3\)",
            "CUDA_ERROR_NOT_INITIALIZED",
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
