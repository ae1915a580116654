from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python, rule, says, shell, torch

LABELS = (
    says(
        r"Received a label value of (?P<label>-?\d+) which is outside the valid range of \[(?P<range>[^)\]]+)",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__SparseSoftmaxCrossEntropyWithLogits_device_/job:localhost/replica:0/task:0/device:CPU:0}} Received a label value of 5 which is outside the valid range of [0, 3).  Label values: 5 [Op:SparseSoftmaxCrossEntropyWithLogits] name: ",
        ),
    ),
    says(r"Target -?\d+ is out of bounds", ("torch 2.13.0", "IndexError: Target 5 is out of bounds.")),
    r"targets?\[\d+\] is out of range",
    "Assertion `?(?:t|cur_target) >= 0 && (?:t|cur_target) < n_classes",
    r"nll_loss[^\n]{0,200}Assertion",
    says(
        "Class values must be (?:smaller than num_classes|non-negative)",
        ("torch 2.13.0", "RuntimeError: Class values must be smaller than num_classes."),
    ),
    "more unique values in `(?:target|preds)` than expected",
    says(
        "contains previously hide_our_frame labels",
        ("scikit-learn 1.8.0rc1", "ValueError: y contains previously hide_our_frame labels: dense"),
    ),
    says(
        r"Label class \d+ exceeds nc=",
        ("yolov5 v7.0", "Label class 3 exceeds nc=3 in 3. Possible class labels are 0-3"),
    ),
    "Invalid classes inferred from unique values",
    "label_value",
    says(
        r"labels? (?:must|should) be (?:in|within|less|smaller|between)[^\n]{0,40}(?:range|num_class|\[0)",
        ("scikit-learn 1.8.0rc1", "All labels must be in [0, n labels) for multilabel targets. Got 3 < 0"),
    ),
    says(
        r"(?:label|class)(?: id| index| value)?s? (?:\S+ )?(?:is|are) (?:out of (?:range|bounds)|larger than|not in \[)",
        ("keras 3.15.1", "Target class id 3 is out of range, which is [3, 3)."),
    ),
)
OF_CLASSES = (
    r"class[_ ]?ids? (?:=|is|are)? ?\S{0,12} ?(?:must be less than|should be \[|>= ?(?:num_classes|nc))",
    r"must be less than (?:num_classes|the number of classes|\w+ classes)",
)
CAUSE = CauseRecord(
    id="label-out-of-range",
    family="data",
    title="A label is beyond the number of classes",
    meaning="The last layer has fewer outputs than the labels ask for, or labels start at 1 or are negative. On a GPU this shows as a device-side assert, often at another line.",
    sure="The largest and smallest label against the number of outputs, or the assertion's own text.",
    says_more_than=("gpu-illegal-access",),
    message_in_title=True,
    recipes=(
        torch("Enough outputs for that label", "torch.nn.Linear(128, $outputs)  # labels go up to $label"),
        keras("Enough outputs for that label", "keras.layers.Dense($outputs)  # labels go up to $label"),
        python("Look at the labels", "print(labels.min(), labels.max(), len(set(labels.tolist())))"),
        torch("As many outputs as classes, labels from 0", "torch.nn.Linear(128, int(labels.max()) + 1)"),
        keras("As many outputs as classes, labels from 0", "keras.layers.Dense(int(labels.max()) + 1)"),
        shell("Get the real line of a device-side assert", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
    ),
    exceptions=(
        rule(0.96, *LABELS, *OF_CLASSES),
        rule(0.88, "is out of bounds for axis 1 with size", frames="to_categorical|categorical"),
        rule(
            0.86,
            says(
                r"device-side assert[\s\S]{0,200}(?:ClassNLLCriterion|NLLLoss|Loss\.cu)",
                (
                    "a log shown in public",
                    "RuntimeError: cuda runtime error (710) : device-side assert triggered at /pytorch/aten/src/THCUNN/generic/ClassNLLCriterion.cu:115",
                ),
            ),
        ),
        rule(
            0.78,
            says(
                "device-side assert",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: device-side assert triggered"),
            ),
            frames="nll_loss|cross_entropy|CrossEntropy|criterion|compute_loss|loss_fn",
        ),
        rule(
            0.45,
            says(
                "device-side assert",
                ("torch 2.13.0, CUDA runtime 12.9.79", "RuntimeError: CUDA error: device-side assert triggered"),
            ),
            r"cuda runtime error \((?:59|710)\)",
        ),
        rule(
            0.85,
            says(
                "[Tt]arget values? should be in",
                ("torch 2.13.0", "Target values should be in [0, 3], but values in range [3, 3] were found."),
            ),
            says(
                "values? in `?(?:target|label)s?`?: .{0,80}but expected only",
                (
                    "torchmetrics 1.9.0",
                    "Detected the following values in `target`: 3 but expected only the following values 3.",
                ),
            ),
            says(
                r"labels? must be in \[0",
                ("scikit-learn 1.8.0rc1", "All labels must be in [0, n labels) for multilabel targets. Got 3 < 0"),
            ),
        ),
        rule(
            0.8,
            says(
                r"\b(?:labels?|class(?:es)?|target)\b.{0,60}(?:out of (?:range|bounds)|exceeds?|>= ?(?:num_classes|n_classes))",
                ("torch 2.13.0", "IndexError: Target 5 is out of bounds."),
            ),
        ),
    ),
    lines=(
        rule(0.95, "Assertion `?(?:t|cur_target) >= 0 && (?:t|cur_target) < n_classes"),
        rule(0.85, r"(?:ClassNLLCriterion|NLLLoss|Loss\.cu)[^\n]{0,200}Assertion"),
        rule(0.72, r"(?:ClassNLLCriterion|NLLLoss)\w*\.cu(?::\d+: \w| line=\d)"),
        rule(0.9, *OF_CLASSES),
        rule(0.85, r"Check failed: .{0,60}\blabel\w*\b.{0,40}(?:<=?|>=?) .{0,60}\(-?\d+ vs\. -?\d+\)"),
        rule(
            0.95,
            says(
                r"Received a label value of -?\d+ which is outside the valid range",
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: {{function_node __wrapped__SparseSoftmaxCrossEntropyWithLogits_device_/job:localhost/replica:0/task:0/device:CPU:0}} Received a label value of 5 which is outside the valid range of [0, 3).  Label values: 5 [Op:SparseSoftmaxCrossEntropyWithLogits] name: ",
                ),
            ),
        ),
        # The node that failed, without what it said: its labels are what it checks.
        rule(0.55, r"\[\[(?:Node: |\{\{node ).{0,200}SparseSoftmaxCrossEntropyWithLogits"),
    ),
)
