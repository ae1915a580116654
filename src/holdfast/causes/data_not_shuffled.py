from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python, torch

LAST_ROWS = "the last rows"  # the words of `detectors/numerics/shuffling`
CAUSE = CauseRecord(
    id="data-not-shuffled",
    family="data",
    title="The batches come in the order of their labels",
    meaning="Each batch holds one class only, so the model learns to answer with the class at hand and forgets the one before. Shuffled, the same data trains well.",
    sure="The classes in the batches, one after the other.",
    says_more_than=("dead-activations",),
    recipes=(
        keras(
            "Shuffle before fit holds out the last rows",
            "order = numpy.random.default_rng(1).permutation(len(x))\nmodel.fit(x[order], y[order], validation_split=0.2)",
            said=LAST_ROWS,
        ),
        keras(
            "Shuffle all rows, before they are batched",
            "dataset = dataset.shuffle(len(x), seed=1).batch(32)",
            unsaid=LAST_ROWS,
        ),
        keras("Let fit shuffle arrays", "model.fit(x, y, shuffle=True)", unsaid=LAST_ROWS),
        torch("Let the loader shuffle", "DataLoader(dataset, batch_size=32, shuffle=True)"),
        python(
            "Shuffle arrays once",
            "order = numpy.random.default_rng(1).permutation(len(x))\nx, y = x[order], y[order]",
            unsaid=LAST_ROWS,
        ),
    ),
)
