from __future__ import annotations

from holdfast.causes.form import CauseRecord, keras, python, rule, says, torch
from holdfast.causes.shared.words import NAN_SYMPTOM

CONSTANT = "every row of the batch is the same"
LABELS = "its labels hold"
WEIGHTS = "its input sample_weight holds"
ALL_ROWS = "all rows of the batch have it"
OTHERWISE = f"{CONSTANT}|{LABELS}|{WEIGHTS}|{ALL_ROWS}"
# The words of `detectors/numerics/non_finite`: the name is the script's own.
WHOLE = r"all rows of the batch have it, in column (?P<columns>[\d, ]+)"
OF_A_LOOP = r"its input (?P<input>(?!sample_weight)[A-Za-z_]\w*) holds (?:NaN|-?Inf) in .*[;(] ?(?P<where>\d[\d, …]*) of the data set\)"
CAUSE = CauseRecord(
    id="bad-input-values",
    family="numerics",
    title="The data holds NaN, infinity or absurd values",
    meaning="Some rows hold values that are no numbers, and they spread into loss and weights. The model itself is not at fault.",
    sure="The values themselves, in the rows that were fed before the loss broke.",
    says_more_than=(
        "dead-activations",
        "exploding-gradients",
        "invalid-math",
        "learning-rate-too-high",
        "mixed-precision-overflow",
    ),
    recipes=(
        python(
            "A column that never changes has a deviation of 0: do not divide by it",
            "deviation = x.std(0)\nx = (x - x.mean(0)) / numpy.where(deviation == 0, 1, deviation)",
            said=WHOLE,
        ),
        python("Or leave the column out", "x = numpy.delete(x, [$columns], axis=1)", said=WHOLE),
        torch(
            "Look at what a batch holds, from its source on",
            "x, y = next(iter(loader))\nprint(x.float().std(0).max(), x.min(), x.max(), y[:10])",
            said=CONSTANT,
        ),
        keras(
            "Look at what a batch holds, from its source on",
            "x, y = next(iter(dataset))\nprint(tf.math.reduce_std(x, 0), tf.reduce_max(x), y[:10])",
            said=CONSTANT,
        ),
        torch(
            "Leave the rows out where they come into the loop (of the data set: $where)",
            "good = torch.isfinite($input).flatten(1).all(1)\n$input = $input[good]  # and targets[good]",
            said=OF_A_LOOP,
            unsaid=ALL_ROWS,
        ),
        keras(
            "Leave the rows out before training (of the data set: $where)",
            "good = numpy.isfinite($input.reshape(len($input), -1)).all(1)\nmodel.fit($input[good], y[good])",
            said=OF_A_LOOP,
            unsaid=ALL_ROWS,
        ),
        keras(
            "Give such a row no weight",
            "sample_weight = numpy.nan_to_num(\n    sample_weight, nan=0.0, posinf=0.0, neginf=0.0)",
            said=WEIGHTS,
        ),
        python(
            "Leave out the rows that have no label",
            "known = numpy.isfinite(y.reshape(len(y), -1)).all(1)\nx, y = x[known], y[known]",
            said=LABELS,
        ),
        python("Find the rows", "bad = numpy.argwhere(~numpy.isfinite(x))\nprint(bad[:10])", unsaid=OTHERWISE),
        python(
            "Put each column's median in their place",
            "x[~numpy.isfinite(x)] = numpy.nan\ncolumn = numpy.nanmedian(x, axis=0)\ncolumn = numpy.nan_to_num(column)  # 0 where there is none\nx = numpy.where(numpy.isnan(x), column, x)",
            unsaid=OTHERWISE,
        ),
        torch("Stop at the first one", 'assert torch.isfinite(x).all(), "bad batch"', unsaid=OTHERWISE),
        keras(
            "Leave such rows out",
            "dataset = dataset.unbatch().filter(\n    lambda x, y: tf.reduce_all(tf.math.is_finite(x))).batch(32)",
            unsaid=OTHERWISE,
        ),
    ),
    exceptions=(
        rule(
            0.93,
            says(r"Input (?:\w+ )?contains (?:NaN|infinity|inf)", ("scipy 1.17.1", "The input contains nan values")),
        ),
        rule(
            0.85,
            says(
                r"(?:NaN|nan|null|missing|non-finite|infinite)s?(?: or \w+)? (?:values? )?(?:found |detected |present )?in (?:the )?(?:input|data|features?|dataset|training data|column|labels?)",
                ("scikit-learn 1.8.0rc1", "There are missing values in features"),
            ),
        ),
        rule(
            0.8,
            says(
                r"(?:input|data|features?|labels?|dataset)\b.{0,40}\b(?:contains?|has|have) (?:some )?(?:NaN|nan|Inf|inf|null|infinite|non-finite)",
                ("scipy 1.17.1", "The input contains nan values"),
            ),
        ),
        rule(0.4, *NAN_SYMPTOM),
        rule(
            0.35,
            says(
                "cannot convert float (?:NaN|infinity) to integer",
                ("numpy 2.4.6", "OverflowError: cannot convert float infinity to integer"),
            ),
            says(
                r"found invalid values:[\s\S]{0,40}nan",
                (
                    "torch 2.13.0",
                    "ValueError: Expected parameter logits (Tensor of shape (1, 2)) of distribution Categorical(logits: torch.Size([1, 2])) to satisfy the constraint IndependentConstraint(Real(), 1), but found invalid values:\ntensor([[nan, nan]])",
                ),
            ),
        ),
        # What is checked as it comes out of the input pipeline has been through no model.
        rule(
            0.88,
            says(
                r"Tensor had (?:NaN|Inf)[\s\S]{0,400}IteratorGetNext",
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: Graph execution error:\n\nError in user-defined function passed to MapDataset:2 transformation with iterator: Iterator::Root::Prefetch::Map: features : Tensor had NaN values\n\t [[{{node CheckNumerics}}]]\n\t [[IteratorGetNext]]",
                ),
            ),
        ),
        rule(
            0.6,
            says(
                r"(?:input|data|feature|column|row|label)s?\b.{0,60}\b(?:NaN|nan|non-finite|infinite|Inf)\b",
                (
                    "torch 2.13.0",
                    "_LinAlgError: linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.85,
            says(
                r"(?:Input|data|dataset|features?)\b.{0,40}\bcontains? (?:NaN|nan|Inf)",
                ("torch 2.13.0", "torch.linalg.eig: input tensor should not contain infs or NaNs."),
            ),
        ),
        rule(
            0.3,
            says("NaN or Inf found in input tensor", ("tensorboardX", "Warning: NaN or Inf found in input tensor.")),
        ),
    ),
)
