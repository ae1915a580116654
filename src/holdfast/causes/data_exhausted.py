from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, torch

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
        rule(
            0.9,
            says(
                "ran out of data",
                (
                    "tensorflow 2.21.0",
                    "Your dataset iterator ran out of data; Make sure that your dataset can generate required number of samples.",
                ),
            ),
            says("Empty training data", ("tensorflow 2.21.0", "Empty training data.")),
        ),
        rule(
            0.87,
            says(
                "End of sequence",
                (
                    "tensorflow 2.21.0",
                    "OutOfRangeError: {{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost/replica:0/task:0/device:CPU:0}} End of sequence [Op:IteratorGetNext] name: ",
                ),
            ),
            says(
                "insufficient elements",
                (
                    "tensorflow 2.21.0",
                    "OutOfRangeError: {{function_node __wrapped__QueueDequeueManyV2_component_types_1_device_/job:localhost/replica:0/task:0/device:CPU:0}} RandomShuffleQueue '484' is closed and has insufficient elements (requested 3, current size 1) [Op:QueueDequeueManyV2]",
                ),
            ),
            types="OutOfRangeError StopIteration",
        ),
        rule(
            0.78,
            says(
                "^",
                (
                    "CPython 3.11.7",
                    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    batch = next(batches)\n            ^^^^^^^^^^^^^\nStopIteration',
                ),
            ),
            types="StopIteration",
            outside="importlib.metadata",
        ),
        rule(
            0.75,
            says("generator raised StopIteration", ("CPython 3.11.7", "RuntimeError: generator raised StopIteration")),
            says(
                "Expected input data to be non-empty",
                ("tf-keras v2.21.0", "ValueError: Expected input data to be non-empty."),
            ),
            says(
                r"Unexpected result of `train_function` \(Empty Logs\)",
                (
                    "tf-keras v2.21.0",
                    "ValueError: Unexpected result of `train_function` (Empty logs). This could be due to issues in input pipeline that resulted in an empty dataset. Otherwise, please use `Model.compile(..., run_eagerly=True)`, or `tf.config.run_functions_eagerly(True)` for more information of where went wrong, or file a issue/bug to `tf.keras`.",
                ),
            ),
        ),
        rule(
            0.76,
            says(
                "exhausted (?:all )?(?:its )?inputs",
                (
                    "torch 2.13.0",
                    "RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks.",
                ),
            ),
            says(
                r"empty (?:dataset|generator|dataloader|data loader)\b",
                (
                    "keras 3.15.1",
                    "ValueError: When passing a Python generator to a Keras model, the generator must yield at least one batch. Received an empty generator.",
                ),
            ),
            says(
                "(?:dataset|data loader|dataloader) (?:is|was) empty",
                ("keras 3.15.1", "ValueError: Provided dataset is empty."),
            ),
            says(
                "non-empty array or dataset",
                ("tensorflow 2.21.0", "ValueError: Expect x to be a non-empty array or dataset."),
            ),
        ),
    ),
    lines=(
        rule(
            0.85,
            says(
                "ran out of data; interrupting training",
                (
                    "tensorflow 2.21.0",
                    "Your dataset iterator ran out of data; interrupting training. Make sure that your dataset can generate at least `steps_per_epoch * epochs` batches (in this case, 3 batches).",
                ),
            ),
        ),
        rule(
            0.2,
            says(
                "OUT_OF_RANGE: End of sequence",
                (
                    "tensorflow 2.21.0",
                    "W0000 00:00:1794823432.681607   20882 local_rendezvous.cc:412] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence",
                ),
            ),
        ),
        rule(
            0.4,
            says(
                "Out of range: .{0,40}StopIteration",
                (
                    "tensorflow 1.4 log",
                    "2018-07-16 09:44:47.314521: W tensorflow/core/framework/op_kernel.cc:1192] Out of range: exceptions.StopIteration: Iteration finished.",
                ),
            ),
        ),
    ),
)
