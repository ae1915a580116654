from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, torch

CAUSE = CauseRecord(
    id="input-starvation",
    family="data",
    title="Training waits for its data",
    meaning="The model is ready for the next batch long before the batch is. Reading or preparing the data takes longer than the step.",
    sure="The share of step time spent waiting for the next batch.",
    slows=True,
    recipes=(
        torch(
            "Prepare batches in parallel and ahead",
            "DataLoader(dataset, num_workers=4, prefetch_factor=4,\n           persistent_workers=True)",
        ),
        keras(
            "Prepare batches in parallel and ahead",
            "dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.prefetch(tf.data.AUTOTUNE)",
        ),
        keras("Do the costly part once", "dataset = dataset.cache()  # before shuffle and batch"),
    ),
    lines=(
        rule(
            0.88,
            says(
                "program is (?:HIGHLY|MODERATELY) input-bound",
                ("tensorflow 2.21.0", "Your program is MODERATELY input-bound because"),
            ),
        ),
    ),
)
