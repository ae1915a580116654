from __future__ import annotations

from holdfast.causes.form import CauseRecord, jax, keras, python, rule, says, torch
from holdfast.causes.shared.words import CHECKED

PLAIN_MATH = r"math domain error|expected a (?:positive|nonnegative) input|division by zero"
RISKY = r"(?:Log\w*|Sqrt|Rsqrt|Div\w*|RealDiv|Reciprocal|Pow\w*|Acos|Asin|Atanh|Norm|Xlogy|Digamma|Lgamma|\w*Solve\w*|\w*Inv(?:erse)?|Cholesky\w*|\w*Svd|\w*Eigh?|Logdet|Det)"
ROOT = r"(?i:such a result: \w*sqrt|'\w*sqrtBackward|op \"\w*sqrt|square root of)"
DIVIDED = r"(?i:such a result: \w*div|'\w*divBackward|op \"\w*div)"
CONSTANT = "which the script made itself"  # the words of `detectors/numerics/non_finite`
MASKED = "a row that is -Inf throughout|a value that was given as -Inf"
CTC = "such a result: ctc_loss"
DEVIATION = r"such a result: (?:std|var)\b"
ANGLE = r"(?i:such a result: (?:acos|asin)\b)"
MEAN = r"(?i:such a result: (?:nan)?mean\b)"
GIVEN = "a value that was given as (?:Inf|NaN)"
NO_LABEL = "no label that counts"
EPSILON = "the epsilon of .* is 0"
NO_LOGARITHM = (
    PLAIN_MATH
    + "|the weights were not finite before|"
    + CONSTANT
    + "|"
    + NO_LABEL
    + "|"
    + ROOT
    + "|"
    + DIVIDED
    + r"|such a result: (?!\w*(?:[Ll]og|[Ee]ntropy))"
)
CAUSE = CauseRecord(
    id="invalid-math",
    family="numerics",
    title="The model or the loss computes something undefined",
    meaning="A logarithm of zero, a division by zero or a root of a negative number, with inputs and weights that are fine. Its result is no number, and all that follows neither.",
    sure="The first operation with a non-finite result has finite inputs.",
    recipes=(
        python("Keep away from zero", "math.log(max(p, 1e-12))", said=PLAIN_MATH),
        keras("Keep away from zero", "loss = -y * tf.math.log(tf.maximum(p, 1e-7))", unsaid=NO_LOGARITHM),
        torch("Keep away from zero", "loss = -y * torch.log(p.clamp_min(1e-7))", unsaid=NO_LOGARITHM),
        jax("Keep away from zero", "loss = -y * jnp.log(jnp.maximum(p, 1e-7))", unsaid=NO_LOGARITHM),
        keras(
            "Leave the optimizer its epsilon", "keras.optimizers.$optimizer(epsilon=1e-7)  # the default", said=EPSILON
        ),
        torch("Leave the optimizer its epsilon", "torch.optim.$optimizer(model.parameters(), eps=1e-8)", said=EPSILON),
        torch(
            "Mend it where it is made",
            "weights = total / counts.clamp(min=1)  # a class may be missing",
            said=f"{GIVEN}|{CONSTANT}",
        ),
        keras("Keep what the root is taken of above zero", "distance = tf.sqrt(tf.maximum(squares, 1e-8))", said=ROOT),
        torch("Keep what the root is taken of above zero", "distance = torch.sqrt(squares + 1e-8)", said=ROOT),
        keras(
            "Keep the divisor away from zero", "mean = tf.math.divide_no_nan(total, count)  # 0 / 0 is 0", said=DIVIDED
        ),
        torch(
            "Keep the divisor away from zero", "mean = total / count.clamp_min(1e-8)  # never negative", said=DIVIDED
        ),
        torch(
            "Keep away from the ends, where the slope is infinite",
            "angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))",
            said=ANGLE,
        ),
        keras(
            "Keep away from the ends, where the slope is infinite",
            "angle = tf.acos(tf.clip_by_value(cosine, -1 + 1e-6, 1 - 1e-6))",
            said=ANGLE,
        ),
        torch("A mean that may be over nothing", "mean = members.sum(0) / max(len(members), 1)", said=MEAN),
        keras(
            "A mean that may be over nothing",
            "count = tf.cast(tf.shape(members)[0], members.dtype)\nmean = tf.math.divide_no_nan(tf.reduce_sum(members, 0), count)",
            said=MEAN,
        ),
        keras(
            "Mend it where it is made",
            "weights = total / np.maximum(counts, 1)  # a class may be missing",
            said=f"{GIVEN}|{CONSTANT}",
        ),
        torch("Find the operation", "torch.autograd.set_detect_anomaly(True)", unsaid=PLAIN_MATH),
        torch(
            "Divide by the labels that count, and by 1 where none does",
            "loss = torch.nn.functional.cross_entropy(logits, labels, reduction='sum')\nloss = loss / (labels != -100).sum().clamp(min=1)",
            said=NO_LABEL,
        ),
        torch("Mask with a number that is large and finite", "scores = scores.masked_fill(mask, -1e9)", said=MASKED),
        keras("Mask with a number that is large and finite", "scores = tf.where(mask, -1e9, scores)", said=MASKED),
        torch(
            "Pass over targets that are longer than what they are read from",
            "torch.nn.CTCLoss(zero_infinity=True)",
            said=CTC,
        ),
        torch(
            "A deviation that a single row has, too",
            "deviation = x.std(0, unbiased=False) + 1e-5\n# and DataLoader(dataset, batch_size=32, drop_last=True)",
            said=DEVIATION,
        ),
        keras("Find the operation", "tf.debugging.enable_check_numerics()", unsaid=PLAIN_MATH),
        jax("Find the operation", 'jax.config.update("jax_debug_nans", True)', unsaid=PLAIN_MATH),
    ),
    exceptions=(
        rule(
            0.85,
            says(
                "Function '" + RISKY + r"Backward\d?' returned nan values",
                ("torch 2.13.0", "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output."),
            ),
        ),
        rule(
            0.85,
            says(
                r"Detected Infinity or NaN in output \d+ of [\s\S]{0,60}op \"" + RISKY + '"',
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: {{function_node __wrapped__CheckNumericsV2_device_/job:localhost/replica:0/task:0/device:CPU:0}} \n\n!!! Detected Infinity or NaN in output 0 of eagerly-executing op \"Log\" (# of outputs: 1) !!!\n  dtype: <dtype: 'float32'>\n  shape: (1,)\n  # of -Inf elements: 1\n\n  Input tensor: tf.Tensor([0.], shape=(1,), dtype=float32)\n\n : Tensor had -Inf values [Op:CheckNumericsV2] name: ",
                ),
            ),
        ),
        rule(
            0.8,
            says(
                r"invalid value \((?:nan|inf)\) encountered in (?:jit\()?(?:log|sqrt|div|pow|rsqrt|acos|asin)",
                ("jax 0.10.2", "FloatingPointError: invalid value (nan) encountered in rsqrt"),
            ),
        ),
        rule(
            0.62,
            says(
                r"FloatingPointError: invalid value \((?:nan|inf)\) encountered in",
                ("jax 0.10.2", "FloatingPointError: invalid value (nan) encountered in rsqrt"),
            ),
        ),
        rule(
            0.8,
            says(
                r"(?:log|sqrt|div|pow)\w*[\s\S]{0,80}Tensor had (?:NaN|Inf)",
                (
                    "tensorflow 2.21.0",
                    "InvalidArgumentError: {{function_node __wrapped__CheckNumerics_device_/job:localhost/replica:0/task:0/device:CPU:0}} log : Tensor had Inf values [Op:CheckNumerics] name: ",
                ),
            ),
        ),
        # What autograd's check names is where it began: most often a division or a root of nothing.
        rule(
            0.53,
            says(
                r"Function '\w+Backward\d?' returned nan values",
                ("torch 2.13.0", "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output."),
            ),
        ),
        rule(
            0.42,
            says(
                CHECKED,
                ("torch 2.13.0", "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output."),
            ),
        ),
        rule(
            0.6,
            says("math domain error", ("CPython 3.11.7", "ValueError: math domain error")),
            says(
                "(?:divide by zero|invalid value) encountered in (?:log|sqrt|true_divide|divide|power)",
                ("numpy 2.4.6", "train.py:1: RuntimeWarning: divide by zero encountered in divide"),
            ),
        ),
        rule(
            0.68,
            says(
                r"(?:matrix|input|Cholesky|factorization|SVD|eigh?|linalg)\b.{0,80}(?:singular|not (?:positive|invertible)|could not be completed|(?:failed|did not) (?:to )?converge|ill-conditioned)",
                (
                    "torch 2.13.0",
                    "_LinAlgError: linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.",
                ),
            ),
            says(
                "not positive.definite",
                ("scipy 1.17.1 in a notebook", "LinAlgError: 1-th leading minor of the array is not positive definite"),
            ),
            says(
                "[Cc]holesky .{0,40}(?:failed|not successful)",
                (
                    "keras 3.15.1",
                    "ValueError: Cholesky decomposition failed. The input might not be a valid positive definite matrix.",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.35,
            says(
                "RuntimeWarning: (?:divide by zero|invalid value) encountered in (?:log|sqrt|true_divide|divide|power|scalar divide)",
                ("numpy 2.4.6", "train.py:1: RuntimeWarning: invalid value encountered in scalar divide"),
            ),
        ),
    ),
)
