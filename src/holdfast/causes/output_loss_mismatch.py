from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, rule, says, torch

CAUSE = CauseRecord(
    id="output-loss-mismatch",
    family="numerics",
    title="Last layer, loss and labels do not fit each other",
    meaning="The loss expects another form of output or label than it gets: probabilities or logits, one column or one number. It then fails, or trains towards nothing.",
    sure="Shapes and activation of the last layer against what the loss is made for.",
    message_in_title=True,
    recipes=(
        keras(
            "Labels are class numbers",
            "model.compile(\n    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))\n# last layer: Dense(classes), no softmax",
        ),
        keras(
            "Two classes, one output",
            "model.compile(\n    loss=keras.losses.BinaryCrossentropy(from_logits=True))\n# last layer: Dense(1), labels of shape (batch, 1)",
        ),
        torch(
            "Labels are class numbers: logits in, integers as target",
            "loss = torch.nn.functional.cross_entropy(logits, labels.long())",
        ),
        torch(
            "Two classes, one output",
            "loss = torch.nn.functional.binary_cross_entropy_with_logits(\n    logits.squeeze(-1), labels.float())",
        ),
    ),
    exceptions=(
        rule(
            0.9,
            says(
                "all elements of (?:input|target) should be between 0 and 1",
                ("torch 2.13.0", "RuntimeError: all elements of target should be between 0 and 1"),
            ),
        ),
        rule(0.9, "input_val >= zero && input_val <= one", r"Assertion `\*?input >= 0\. && \*?input <= 1\.`"),
        rule(0.82, r"assertion failed: \[predictions must be [<>]= ?[01]\]"),
        rule(
            0.88,
            "passing a target array of shape .{0,80} while using as loss",
            says(
                "was passed for an output of shape .{0,80} while using as loss",
                (
                    "tensorflow 2.21.0",
                    "A target array with shape (32, 10) was passed for an output of shape (32, 10) while using as loss `",
                ),
            ),
        ),
        rule(
            0.88,
            says(
                r"(?:logits` and `labels|labels` and `logits|target` and `output|Arguments `target` and `output)[^\n]{0,60}must have the same (?:shape|rank)",
                (
                    "keras 3.15.1",
                    "ValueError: Arguments `target` and `output` must have the same shape. Received: target.shape=(None, 1), output.shape=(None, 3)",
                ),
            ),
        ),
        rule(
            0.75,
            says(
                "multi-target not supported",
                ("torch 2.13.0", "RuntimeError: 0D or 1D target tensor expected, multi-target not supported"),
            ),
            "Expected floating point type for target with class probabilities",
        ),
        rule(0.72, r"Shapes \(.{0,40}\) and \(.{0,40}\) are incompatible", frames="loss|crossentropy"),
        rule(
            0.55,
            says(
                r"Shapes \(None,\s?\d*\) and \(None, \d+\) are incompatible",
                ("tensorflow 2.21.0", "ValueError: Shapes (None, 1) and (None, 10) are incompatible"),
            ),
        ),
    ),
    lines=(
        rule(0.9, r"Assertion `\*?input(?:_val)? >= (?:zero|0\.).{0,20}input(?:_val)? <= (?:one|1\.)"),
        rule(
            0.5,
            says(
                r"Using a target size \(.{0,60}different to the input size",
                (
                    "torch 2.13.0",
                    "Using a target size (3) that is different to the input size (3) is deprecated. Please ensure they have the same size.",
                ),
            ),
        ),
        rule(0.45, "softmax over axis -1 of (?:inputs|a tensor).{0,80}size is 1"),
    ),
)
