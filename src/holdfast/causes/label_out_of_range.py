from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, near, python, rule, says, shell, torch

LABELS = (
    says(
        r"Received a label value of (?P<label>-?\d+) which is outside the valid range of \[(?P<range>[^)\]]+)",
        (
            "tensorflow 2.21.0",
            "InvalidArgumentError: {{function_node __wrapped__SparseSoftmaxCrossEntropyWithLogits_device_/job:localhost/replica:0/task:0/device:CPU:0}} Received a label value of 5 which is outside the valid range of [0, 3).  Label values: 5 [Op:SparseSoftmaxCrossEntropyWithLogits] name: ",
        ),
    ),
    says(r"Target -?\d+ is out of bounds", ("torch 2.13.0", "IndexError: Target 5 is out of bounds.")),
    says(
        "Assertion `?(?:t|cur_target) >= 0 && (?:t|cur_target) < n_classes",
        (
            "torch 2.0",
            "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.",
        ),
        (
            "torch 0.2",
            "/opt/conda/conda-bld/pytorch_1503970438496/work/torch/lib/THCUNN/ClassNLLCriterion.cu:57: void cunn_ClassNLLCriterion_updateOutput_kernel(Dtype *, Dtype *, Dtype *, long *, Dtype *, int, int, int, int, long) [with Dtype = float, Acctype = float]: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n_classes` failed.",
        ),
    ),
    says(
        "Class values must be (?:smaller than num_classes|non-negative)",
        ("torch 2.13.0", "RuntimeError: Class values must be smaller than num_classes."),
    ),
    says(
        "more unique values in `(?:target|preds)` than expected",
        (
            "torchmetrics 1.9.0",
            "RuntimeError: Detected more unique values in `target` than expected. Expected only 3 but found 5 in `target`. Found values: tensor([0, 1, 3, 4, 7]).",
        ),
    ),
    says(
        "contains previously unseen labels",
        ("scikit-learn 1.9.1", "ValueError: y contains previously unseen labels: np.str_('cow')"),
    ),
    says(
        r"Label class \d+ exceeds nc=",
        (
            "yolov5 v7.0",
            "AssertionError: Label class 5 exceeds nc=5 in data/coco128.yaml. Possible class labels are 0-4",
        ),
    ),
    says(
        "Invalid classes inferred from unique values",
        (
            "xgboost 1.7",
            "ValueError: Invalid classes inferred from unique values of `y`.  Expected: [ 0  1  2  3  4  5  6  7  8  9 10 11 12 13], got [ 1  2  3  4  5  6  7  8  9 10 11 12 13 14]",
        ),
    ),
    says(
        r"labels? (?:must|should) be (?:in|within|less|smaller|between)[^\n]{0,40}(?:range|num_class|\[0)",
        ("scikit-learn 1.8.0rc1", "ValueError: All labels must be in [0, n labels) for multilabel targets. Got -1 < 0"),
    ),
    says(
        r"(?:label|class)(?: id| index| value)?s? (?:\S+ )?(?:is|are) (?:out of (?:range|bounds)|larger than|not in \[)",
        ("keras 3.15.1", "ValueError: Target class id 7 is out of range, which is [0, 5)."),
    ),
)
OF_CLASSES = (
    says(
        r"class_id should be \[from 0 to",
        (
            "darknet (AlexeyAB), data.c",
            " Wrong annotation: class_id = 3. But class_id should be [from 0 to 2], file: data/obj/img_0412.txt ",
        ),
    ),
    says(
        r"must be less than (?:num_classes|the number of classes|\w+ classes)",
        ("keras-yolo3", "AssertionError: class id must be less than num_classes"),
    ),
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
        python("Mend that row, or leave it out", "print(labels[$row])"),
        python(
            "Count classes from 0",
            "labels = labels - 1  # they go from 1 to $highest",
            said=r"from 1 to (?P<highest>\d+) \(row",
        ),
        torch("Enough outputs for that label", "torch.nn.Linear(128, $outputs)  # labels go up to $label"),
        keras("Enough outputs for that label", "keras.layers.Dense($outputs)  # labels go up to $label"),
        python("Look at the labels", "print(labels.min(), labels.max(), len(set(labels.tolist())))"),
        torch("As many outputs as classes, labels from 0", "torch.nn.Linear(128, int(labels.max()) + 1)"),
        keras("As many outputs as classes, labels from 0", "keras.layers.Dense(int(labels.max()) + 1)"),
        shell("Get the real line of a device-side assert", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
    ),
    exceptions=(
        rule(0.96, *LABELS, *OF_CLASSES),
        rule(
            0.88,
            says(
                "is out of bounds for axis 1 with size",
                (
                    "keras 3.15.1",
                    'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    y = keras.utils.to_categorical(labels, num_classes=5)\n        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  File "/venv/lib/python3.11/site-packages/keras/src/utils/numerical_utils.py", line 98, in to_categorical\n    categorical[np.arange(batch_size), x] = 1\n    ~~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^^^^^\nIndexError: index 7 is out of bounds for axis 1 with size 5',
                ),
            ),
            frames="to_categorical|categorical",
        ),
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
        ),
        rule(
            0.85,
            says(
                "[Tt]arget values? should be in",
                ("torch 2.13.0", "Target values should be in [0, 9], but values in range [0, 10] were found. "),
            ),
            says(
                "values? in `?(?:target|label)s?`?: .{0,80}but expected only",
                (
                    "torchmetrics 1.9.0",
                    "RuntimeError: Detected the following values in `target`: tensor([0, 1, 7]) but expected only the following values [0, 1].",
                ),
            ),
            says(
                r"labels? must be in \[0",
                (
                    "scikit-learn 1.8.0rc1",
                    "ValueError: All labels must be in [0, n labels) for multilabel targets. Got -1 < 0",
                ),
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
        rule(
            0.85,
            says(
                r"(?:ClassNLLCriterion|NLLLoss|Loss\.cu:\d+: nll_loss)[^\n]{0,300}Assertion",
                (
                    "torch 0.2",
                    "/opt/conda/conda-bld/pytorch_1503970438496/work/torch/lib/THCUNN/ClassNLLCriterion.cu:57: void cunn_ClassNLLCriterion_updateOutput_kernel(Dtype *, Dtype *, Dtype *, long *, Dtype *, int, int, int, int, long) [with Dtype = float, Acctype = float]: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n_classes` failed.",
                ),
                near(
                    "torch 2.0",
                    "../aten/src/ATen/native/cuda/Loss.cu:92: operator(): block: [0,0,0], thread: [0,0,0] Assertion `input_val >= zero && input_val <= one` failed.",
                ),
            ),
        ),
        rule(
            0.72,
            says(
                r"(?:ClassNLLCriterion|NLLLoss)\w*\.cu(?::\d+: \w| line=\d)",
                (
                    "torch 1.6",
                    "THCudaCheck FAIL file=/pytorch/aten/src/THCUNN/generic/SpatialClassNLLCriterion.cu line=134 error=710 : device-side assert triggered",
                ),
            ),
        ),
        rule(0.9, *OF_CLASSES),
        rule(
            0.85,
            says(
                r"Check failed: .{0,60}\blabel\w*\b.{0,40}(?:<=?|>=?) .{0,60}\(-?\d+ vs\. -?\d+\)",
                (
                    "caffe 1.0",
                    "F1114 18:11:03.763149 15175 accuracy_layer.cpp:71] Check failed: label_value < num_labels (24 vs. 10) ",
                ),
            ),
        ),
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
        rule(
            0.55,
            says(
                r"\[\[(?:Node: |\{\{node ).{0,200}SparseSoftmaxCrossEntropyWithLogits",
                (
                    "tensorflow 2.21.0",
                    "\t [[{{node compile_loss/sparse_categorical_crossentropy/SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits}}]]",
                ),
            ),
        ),
    ),
)
