from __future__ import annotations

from holdfast.causes.form import KERAS, TORCH, CauseRecord, Recipe, rule, says

CAUSE = CauseRecord(
    id="output-loss-mismatch",
    family="numerics",
    title="Last layer, loss and labels do not fit each other",
    meaning="The loss expects another form of output or label than it gets: probabilities or logits, one column or one number. It then fails, or trains towards nothing.",
    sure="Shapes and activation of the last layer against what the loss is made for.",
    says_more_than=(
        "dead-activations",
        "invalid-math",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "unscaled-target",
        "vanishing-gradients",
    ),
    message_in_title=True,
    recipes=(
        Recipe(
            "Sigmoid for one unit",
            'keras.layers.Dense(1, activation="sigmoid")\n# with loss="binary_crossentropy"',
            KERAS,
            when="softmax over one unit",
        ),
        Recipe(
            "One logit, and the loss that makes a probability of it; no softmax",
            "loss = torch.nn.functional.binary_cross_entropy_with_logits(\n    logits.squeeze(-1), labels.float())",
            TORCH,
            when="softmax over one unit",
        ),
        Recipe(
            "Leave the activation to the loss",
            "keras.layers.Dense($units)  # the last layer, no activation",
            KERAS,
            when="probabilities for logits",
        ),
        Recipe(
            "Or tell the loss that it gets probabilities",
            "model.compile(optimizer,\n    loss=keras.losses.$keras_loss(from_logits=False))",
            KERAS,
            when="probabilities for logits",
        ),
        Recipe(
            "Give the loss what the last Linear gives: it applies $activation itself",
            "loss = torch.nn.functional.$torch_loss(logits, labels)\nprobabilities = logits.$activation(-1)  # only to predict",
            TORCH,
            when="probabilities for logits",
        ),
        Recipe(
            "Tell the loss that it gets logits",
            "model.compile(optimizer,\n    loss=keras.losses.$keras_loss(from_logits=True))",
            KERAS,
            when="logits for probabilities",
        ),
        Recipe(
            "Or end in probabilities",
            'keras.layers.Dense($units, activation="$activation")  # the last layer',
            KERAS,
            when="logits for probabilities",
        ),
        Recipe(
            "Use the loss that takes logits",
            "loss = torch.nn.functional.$torch_loss(logits, labels)",
            TORCH,
            when="logits for probabilities",
        ),
        Recipe(
            "Use the loss that takes logits",
            "loss = torch.nn.functional.cross_entropy(logits, labels)",
            TORCH,
            when="logits for logarithms",
        ),
        Recipe(
            "Or give it logarithms of probabilities",
            "loss = torch.nn.functional.nll_loss(logits.log_softmax(-1), labels)",
            TORCH,
            when="logits for logarithms",
        ),
        Recipe(
            "Give it logarithms of probabilities; the targets stay probabilities",
            'loss = torch.nn.functional.kl_div(\n    logits.log_softmax(-1), targets, reduction="batchmean")',
            TORCH,
            when="logits for a divergence",
        ),
        Recipe(
            "End in probabilities",
            'keras.layers.Dense($units, activation="softmax")  # the last layer',
            KERAS,
            when="logits for a divergence",
        ),
        Recipe(
            "Give it logarithms of probabilities",
            "log_probs = logits.log_softmax(-1)  # of shape (frames, rows, symbols)\nloss = torch.nn.functional.ctc_loss(log_probs, targets, frames, lengths)",
            TORCH,
            when="logits for alignments",
        ),
        Recipe(
            "A yes or no for each class",
            'keras.layers.Dense($units, activation="sigmoid")  # the last layer\n# with loss="binary_crossentropy", metrics=["binary_accuracy"]',
            KERAS,
            when="several of many",
        ),
        Recipe(
            "Take the softmax over the classes",
            "torch.nn.Softmax(dim=1)  # or leave it out: cross_entropy takes logits",
            TORCH,
            when="softmax over rows",
        ),
        Recipe(
            "Take the softmax over the classes",
            "keras.layers.Softmax(axis=-1)",
            KERAS,
            when="softmax over rows",
        ),
        Recipe(
            "One loss for a choice among classes",
            'model.compile(optimizer, loss="categorical_crossentropy")',
            KERAS,
            when="one of many",
        ),
        Recipe(
            "One loss for a choice among classes; it takes logits, so no softmax",
            "loss = torch.nn.functional.cross_entropy(logits, labels)",
            TORCH,
            when="one of many",
        ),
        Recipe(
            "No activation after the last layer",
            "keras.layers.Dense($units)  # its outputs are the logits",
            KERAS,
            when="rectified logits",
        ),
        Recipe(
            "No activation after the last layer",
            "torch.nn.Linear(features, $units)  # its outputs are the logits",
            TORCH,
            when="rectified logits",
        ),
        Recipe(
            "Give outputs and targets the same shape",
            "loss = criterion(model(x).squeeze(-1), y)  # both of shape (rows,)",
            TORCH,
            when="spread shapes",
        ),
        Recipe(
            "Give outputs and targets the same shape",
            "y = y.reshape(-1, 1)  # as Dense(1) gives it: (rows, 1)",
            KERAS,
            when="spread shapes",
        ),
        Recipe(
            "Count the labels from 0 to 1",
            "y = (y == y.max()).astype('float32')  # two classes\n# more than two: Dense(classes), SparseCategoricalCrossentropy",
            KERAS,
            when="label range",
        ),
        Recipe(
            "Count the labels from 0 to 1",
            "labels = (labels == highest).float()  # highest: of the whole data set\n# more than two classes: Linear(features, classes), cross_entropy",
            TORCH,
            when="label range",
        ),
        Recipe(
            "Bring what is to be given between 0 and 1",
            "y = (y - y.min(axis=0)) / (y.max(axis=0) - y.min(axis=0) + 1e-8)",
            KERAS,
            when="quantities as shares",
        ),
        Recipe(
            "Or a loss for quantities, and no activation",
            'keras.layers.Dense($units)  # the last layer\nmodel.compile(optimizer, loss="mse")',
            KERAS,
            when="quantities as shares",
        ),
        Recipe(
            "A loss for quantities, and no sigmoid",
            "loss = torch.nn.functional.mse_loss(outputs, targets)",
            TORCH,
            when="quantities as shares",
        ),
        Recipe(
            "A quantity is predicted without an activation",
            "keras.layers.Dense($units)  # the last layer",
            KERAS,
            when="output range",
        ),
        Recipe(
            "A quantity is predicted without an activation",
            "torch.nn.Linear(features, $units)  # the last layer; nothing after it",
            TORCH,
            when="output range",
        ),
        Recipe(
            "Labels are class numbers",
            "model.compile(\n    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))\n# last layer: Dense(classes), no softmax",
            KERAS,
            without="mismatch",
        ),
        Recipe(
            "Two classes, one output",
            "model.compile(\n    loss=keras.losses.BinaryCrossentropy(from_logits=True))\n# last layer: Dense(1), labels of shape (batch, 1)",
            KERAS,
            without="mismatch",
        ),
        Recipe(
            "Labels are class numbers: logits in, integers as target",
            "loss = torch.nn.functional.cross_entropy(logits, labels.long())",
            TORCH,
            without="mismatch",
        ),
        Recipe(
            "Two classes, one output",
            "loss = torch.nn.functional.binary_cross_entropy_with_logits(\n    logits.squeeze(-1), labels.float())",
            TORCH,
            without="mismatch",
        ),
        Recipe(
            "A loss for classes",
            'model.compile(optimizer, loss="categorical_crossentropy")  # one-hot rows\n'
            '# or "sparse_categorical_crossentropy" for class numbers',
            KERAS,
            when="classes as quantities",
        ),
        Recipe(
            "A loss for classes",
            "loss = torch.nn.functional.cross_entropy(logits, labels)  # no softmax",
            TORCH,
            when="classes as quantities",
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
        rule(
            0.9,
            says(
                "input_val >= zero && input_val <= one",
                (
                    "torch 2.0",
                    "../aten/src/ATen/native/cuda/Loss.cu:92: operator(): block: [0,0,0], thread: [0,0,0] Assertion `input_val >= zero && input_val <= one` failed.",
                ),
            ),
            says(
                r"Assertion `\*?input >= 0\. && \*?input <= 1\.`",
                (
                    "torch 1.1",
                    "/pytorch/aten/src/THCUNN/BCECriterion.cu:57: void bce_updateOutput_no_reduce_functor<Dtype, Acctype>::operator()(const Dtype *, const Dtype *, Dtype *) [with Dtype = float, Acctype = float]: block: [20,0,0], thread: [450,0,0] Assertion `*input >= 0. && *input <= 1.` failed.",
                ),
            ),
        ),
        rule(
            0.82,
            says(
                r"assertion failed: \[predictions must be [<>]= ?[01]\]",
                (
                    "tensorflow 2.21.0, its old Keras",
                    "InvalidArgumentError: Graph execution error:\n\nassertion failed: [predictions must be >= 0] [Condition x >= y did not hold element-wise:] [x (p:0) = ] [-0.0213 0.7] [y (Cast_1/x:0) = ] [0]\n\t [[{{node assert_greater_equal/Assert/AssertGuard/Assert}}]] [Op:__inference_f_227]",
                ),
            ),
        ),
        rule(
            0.88,
            says(
                "passing a target array of shape .{0,80} while using as loss",
                (
                    "keras 2.2.4",
                    "ValueError: You are passing a target array of shape (60000, 1) while using as loss `categorical_crossentropy`. `categorical_crossentropy` expects targets to be binary matrices (1s and 0s) of shape (samples, classes).",
                ),
            ),
            says(
                "was passed for an output of shape .{0,80} while using as loss",
                (
                    "tensorflow 2.21.0",
                    "ValueError: A target array with shape (32, 5) was passed for an output of shape (None, 10) while using as loss `categorical_crossentropy`. This loss expects targets to have the same shape as the output.",
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
            says(
                "Expected floating point type for target with class probabilities",
                (
                    "torch 2.13.0",
                    "RuntimeError: Expected floating point type for target with class probabilities, got Long",
                ),
            ),
        ),
        rule(
            0.72,
            says(
                r"Shapes \(.{0,40}\) and \(.{0,40}\) are incompatible",
                (
                    "keras 2.11",
                    'Traceback (most recent call last):\n  File "train.py", line 31, in <module>\n    loss = keras.losses.categorical_crossentropy(labels, predictions)\n  File "/venv/lib/python3.8/site-packages/keras/losses.py", line 1990, in categorical_crossentropy\n    return backend.categorical_crossentropy(\n  File "/venv/lib/python3.8/site-packages/keras/backend.py", line 5529, in categorical_crossentropy\n    target.shape.assert_is_compatible_with(output.shape)\nValueError: Shapes (32, 1) and (32, 10) are incompatible',
                ),
            ),
            frames="loss|crossentropy",
        ),
        rule(
            0.55,
            says(
                r"Shapes \(None,\s?\d*\) and \(None, \d+\) are incompatible",
                ("tensorflow 2.21.0", "ValueError: Shapes (None, 1) and (None, 10) are incompatible"),
            ),
        ),
    ),
    lines=(
        rule(
            0.9,
            says(
                r"Assertion `\*?input(?:_val)? >= (?:zero|0\.).{0,20}input(?:_val)? <= (?:one|1\.)",
                (
                    "torch 1.1",
                    "/pytorch/aten/src/THCUNN/BCECriterion.cu:57: void bce_updateOutput_no_reduce_functor<Dtype, Acctype>::operator()(const Dtype *, const Dtype *, Dtype *) [with Dtype = float, Acctype = float]: block: [20,0,0], thread: [450,0,0] Assertion `*input >= 0. && *input <= 1.` failed.",
                ),
            ),
        ),
        rule(
            0.5,
            says(
                r"Using a target size \(.{0,60}different to the input size",
                (
                    "torch 2.13.0",
                    "UserWarning: Using a target size (torch.Size([32])) that is different to the input size (torch.Size([32, 1])). This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
                ),
            ),
        ),
        rule(
            0.45,
            says(
                "softmax over axis -1 of a tensor.{0,80}has size 1",
                (
                    "keras 3.15.1",
                    "/venv/lib/python3.11/site-packages/keras/src/ops/nn.py:959: UserWarning: You are using a softmax over axis -1 of a tensor of shape (None, 1). This axis has size 1. The softmax operation will always return the value 1, which is likely not what you intended. Did you mean to use a sigmoid instead?",
                ),
            ),
        ),
    ),
)
