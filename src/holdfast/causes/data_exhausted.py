from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, torch

ENDED = "Out of range: .{0,40}StopIteration"
CAUSE = CauseRecord(
    id="data-exhausted",
    family="data",
    title="The data ended before the steps did",
    meaning="Fewer batches came than steps were asked for; the rest was not trained. A generator or iterator is used up after one pass.",
    sure="The framework says so, or fewer steps were done than asked for.",
    goes_on=True,
    recipes=(
        keras("Let the data start over", "dataset = dataset.repeat()"),
        keras("Ask for the steps there are", "model.fit(dataset, epochs=10)  # no steps_per_epoch"),
        torch(
            "Begin again at the end",
            "for epoch in range(epochs):\n    for batch in loader:\n        train_step(batch)",
        ),
    ),
    exceptions=(
        rule(0.9, "ran out of data", "input ran out", "Empty training data", r"steps_per_epoch \* epochs"),
        rule(
            0.87,
            "End of sequence",
            "insufficient elements",
            "is closed and has insufficient",
            types="OutOfRangeError StopIteration",
        ),
        rule(0.78, "^", types="StopIteration"),
        rule(
            0.75,
            "generator raised StopIteration",
            "Expected input data to be non-empty",
            r"Unexpected result of `train_function` \(Empty Logs\)",
        ),
        rule(
            0.76,
            "exhausted (?:all )?(?:its )?inputs",
            "yield at least one (?:batch|element)",
            r"empty (?:dataset|generator|dataloader|data loader)\b",
            "(?:dataset|data loader|dataloader) (?:is|was) empty",
            "non-empty array or dataset",
        ),
    ),
    lines=(
        rule(0.85, "ran out of data; interrupting training"),
        rule(0.2, "OUT_OF_RANGE: End of sequence"),
        rule(0.4, ENDED),
    ),
)
