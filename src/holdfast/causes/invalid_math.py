from __future__ import annotations

from holdfast.causes.form import CauseRecord, jax, keras, python, rule, torch
from holdfast.causes.shared.words import CHECKED

PLAIN_MATH = r"math domain error|expected a (?:positive|nonnegative) input|division by zero"
RISKY = r"(?:Log\w*|Sqrt|Rsqrt|Div\w*|RealDiv|Reciprocal|Pow\w*|Acos|Asin|Atanh|Norm|Xlogy|Digamma|Lgamma|\w*Solve\w*|\w*Inv(?:erse)?|Cholesky\w*|\w*Svd|\w*Eigh?|Logdet|Det)"
CAUSE = CauseRecord(
    id="invalid-math",
    family="numerics",
    title="The model or the loss computes something undefined",
    meaning="A logarithm of zero, a division by zero or a root of a negative number, with inputs and weights that are fine. Its result is no number, and all that follows neither.",
    sure="The first operation with a non-finite result has finite inputs.",
    recipes=(
        python("Keep away from zero", "math.log(max(p, 1e-12))", said=PLAIN_MATH),
        keras("Keep away from zero", "loss = -y * tf.math.log(tf.maximum(p, 1e-7))", unsaid=PLAIN_MATH),
        torch("Keep away from zero", "loss = -y * torch.log(p.clamp_min(1e-7))", unsaid=PLAIN_MATH),
        jax("Keep away from zero", "loss = -y * jnp.log(jnp.maximum(p, 1e-7))", unsaid=PLAIN_MATH),
        torch("Find the operation", "torch.autograd.set_detect_anomaly(True)", unsaid=PLAIN_MATH),
        keras("Find the operation", "tf.debugging.enable_check_numerics()", unsaid=PLAIN_MATH),
        jax("Find the operation", 'jax.config.update("jax_debug_nans", True)', unsaid=PLAIN_MATH),
    ),
    exceptions=(
        rule(0.85, "Function '" + RISKY + r"Backward\d?' returned nan values"),
        rule(0.85, r"Detected Infinity or NaN in output \d+ of [\s\S]{0,60}op \"" + RISKY + '"'),
        rule(0.8, r"invalid value \((?:nan|inf)\) encountered in (?:jit\()?(?:log|sqrt|div|pow|rsqrt|acos|asin)"),
        rule(0.62, r"FloatingPointError: invalid value \((?:nan|inf)\) encountered in"),
        rule(
            0.8,
            r"(?:log|sqrt|div|pow)\w*[\s\S]{0,80}Tensor had (?:NaN|Inf)",
            r"Tensor had (?:NaN|Inf)[\s\S]{0,200}(?:/log|/sqrt|/truediv|/div)",
        ),
        # What autograd's check names is where it began: most often a division or a root of nothing.
        rule(0.53, r"Function '\w+Backward\d?' returned nan values"),
        rule(0.42, CHECKED),
        rule(
            0.6,
            "math domain error",
            "(?:divide by zero|invalid value) encountered in (?:log|sqrt|true_divide|divide|power)",
        ),
        rule(
            0.68,
            r"(?:matrix|input|Cholesky|factorization|SVD|eigh?|linalg)\b.{0,80}(?:singular|not (?:positive|invertible)|could not be completed|(?:failed|did not) (?:to )?converge|ill-conditioned)",
            "leading minor of",
            "not positive.definite",
            "[Cc]holesky .{0,40}(?:failed|not successful)",
        ),
    ),
    lines=(
        rule(
            0.35,
            "RuntimeWarning: (?:divide by zero|invalid value) encountered in (?:log|sqrt|true_divide|divide|power|scalar divide)",
        ),
    ),
)
