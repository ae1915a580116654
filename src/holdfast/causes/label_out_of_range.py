from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python, rule, shell, torch

LABELS = (
    r"Received a label value of (?P<label>-?\d+) which is outside the valid range of \[(?P<range>[^)\]]+)",
    r"Target -?\d+ is out of bounds",
    r"targets?\[\d+\] is out of range",
    "Assertion `?(?:t|cur_target) >= 0 && (?:t|cur_target) < n_classes",
    r"nll_loss[^\n]{0,200}Assertion",
    "Class values must be (?:smaller than num_classes|non-negative)",
    "more unique values in `(?:target|preds)` than expected",
    "contains previously unseen labels",
    r"Label class \d+ exceeds nc=",
    "Invalid classes inferred from unique values",
    "label_value",
    r"labels? (?:must|should) be (?:in|within|less|smaller|between)[^\n]{0,40}(?:range|num_class|\[0)",
    r"(?:label|class)(?: id| index| value)?s? (?:\S+ )?(?:is|are) (?:out of (?:range|bounds)|larger than|not in \[)",
)
OF_CLASSES = (
    r"class[_ ]?ids? (?:=|is|are)? ?\S{0,12} ?(?:must be less than|should be \[|>= ?(?:num_classes|nc))",
    r"class_id should be \[",
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
        rule(0.86, r"device-side assert[\s\S]{0,200}(?:ClassNLLCriterion|NLLLoss|Loss\.cu)"),
        rule(0.78, "device-side assert", frames="nll_loss|cross_entropy|CrossEntropy|criterion|compute_loss|loss_fn"),
        rule(0.45, "device-side assert", r"cuda runtime error \((?:59|710)\)"),
        rule(
            0.85,
            "[Tt]arget values? should be in",
            "values? in `?(?:target|label)s?`?: .{0,80}but expected only",
            r"labels? must be in \[0",
        ),
        rule(
            0.8,
            r"\b(?:labels?|class(?:es)?|target)\b.{0,60}(?:out of (?:range|bounds)|exceeds?|>= ?(?:num_classes|n_classes))",
        ),
    ),
    lines=(
        rule(0.95, "Assertion `?(?:t|cur_target) >= 0 && (?:t|cur_target) < n_classes"),
        rule(0.85, r"(?:ClassNLLCriterion|NLLLoss|Loss\.cu)[^\n]{0,200}Assertion"),
        rule(0.72, r"(?:ClassNLLCriterion|NLLLoss)\w*\.cu(?::\d+: \w| line=\d)"),
        rule(0.9, *OF_CLASSES),
        rule(0.85, r"Check failed: .{0,60}\blabel\w*\b.{0,40}(?:<=?|>=?) .{0,60}\(-?\d+ vs\. -?\d+\)"),
        rule(0.95, r"Received a label value of -?\d+ which is outside the valid range"),
        # The node that failed, without what it said: its labels are what it checks.
        rule(0.55, r"\[\[(?:Node: |\{\{node ).{0,200}SparseSoftmaxCrossEntropyWithLogits"),
    ),
)
