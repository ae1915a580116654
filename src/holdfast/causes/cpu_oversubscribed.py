from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, shell, torch, words

CAUSE = CauseRecord(
    id="cpu-oversubscribed",
    family="process",
    title="More threads than cores",
    meaning="Threads times processes are far beyond the cores, so they take each other's turn. Fewer are faster.",
    sure="The run queue and context switches, while every step takes longer.",
    slows=True,
    recipes=(
        shell("Fewer threads in every library", "OMP_NUM_THREADS=$threads holdfast run python train.py"),
        torch("Fewer threads in each process", "torch.set_num_threads($threads)  # before training"),
        keras("Fewer threads in each process", "tf.config.threading.set_intra_op_parallelism_threads($threads)"),
        torch(
            "One thread in each loader worker, and not more workers than processors",
            "DataLoader(dataset, num_workers=$cores)  # each runs one thread",
        ),
        words("Count them together", "threads of a process × processes should be about the number of cores"),
    ),
    lines=(
        rule(
            0.35,
            says(
                r"DataLoader will create \d+ worker processes in total",
                (
                    "torch 2.13.0",
                    "This DataLoader will create 16 worker processes in total. Our suggested max number of worker in current system is 2, which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                ),
            ),
        ),
    ),
)
