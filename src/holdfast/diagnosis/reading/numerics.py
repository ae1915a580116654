"""NaN and its kin: where a message or the course of the loss tells more than that there is one."""

from __future__ import annotations

from holdfast.diagnosis.reading.rule import Rule, flatten, rule, rules

RISKY = r"(?:Log\w*|Sqrt|Rsqrt|Div\w*|RealDiv|Reciprocal|Pow\w*|Acos|Asin|Atanh|Norm|Xlogy|Digamma|Lgamma|\w*Solve\w*|\w*Inv(?:erse)?|Cholesky\w*|\w*Svd|\w*Eigh?|Logdet|Det)"
# That the loss is no number says nothing of why.
NAN_SYMPTOM = r"loss (?:became|is|=|:) ?(?:infinite or )?(?:nan|inf\b)|nan loss|nan in (?:summary|loss)|loss is (?:nan|not finite)|diverged with loss"
REMEDY = r"probably|avoid|prevent|against|clipping|help with"
CHECKED = r"(?:Detected Infinity or NaN|invalid value \((?:nan|inf)\) encountered|had (?:NaN|Inf)|returned nan values)"

EXCEPTIONS: tuple[Rule, ...] = flatten(
    (
        rules(
            "bad-input-values",
            (0.93, r"Input (?:\w+ )?contains (?:NaN|infinity|inf)|contains infinity or a value too large"),
            (
                0.85,
                r"(?:NaN|nan|null|missing|non-finite|infinite)s?(?: or \w+)? (?:values? )?(?:found |detected |present )?in (?:the )?(?:input|data|features?|dataset|training data|column|labels?)",
            ),
            (
                0.8,
                r"(?:input|data|features?|labels?|dataset)\b.{0,40}\b(?:contains?|has|have) (?:some )?(?:NaN|nan|Inf|inf|null|infinite|non-finite)",
            ),
            (0.4, NAN_SYMPTOM),
            (0.35, r"cannot convert float (?:NaN|infinity) to integer|found invalid values:[\s\S]{0,40}nan"),
        ),
        (
            # What is checked as it comes out of the input pipeline has been through no model.
            rule(
                "bad-input-values",
                0.88,
                r"Tensor had (?:NaN|Inf)[\s\S]{0,400}IteratorGetNext|IteratorGetNext[\s\S]{0,400}Tensor had (?:NaN|Inf)",
            ),
            rule("invalid-math", 0.85, r"Function '" + RISKY + r"Backward\d?' returned nan values"),
            rule("invalid-math", 0.85, r"Detected Infinity or NaN in output \d+ of [\s\S]{0,60}op \"" + RISKY + '"'),
            rule(
                "invalid-math",
                0.8,
                r"invalid value \((?:nan|inf)\) encountered in (?:jit\()?(?:log|sqrt|div|pow|rsqrt|acos|asin)",
            ),
            rule("invalid-math", 0.62, r"FloatingPointError: invalid value \((?:nan|inf)\) encountered in"),
            rule(
                "invalid-math",
                0.8,
                r"(?:log|sqrt|div|pow)\w*[\s\S]{0,80}Tensor had (?:NaN|Inf)|Tensor had (?:NaN|Inf)[\s\S]{0,200}(?:/log|/sqrt|/truediv|/div)",
            ),
            # What autograd's check names is where it began: most often a division or a root of nothing.
            rule("invalid-math", 0.53, r"Function '\w+Backward\d?' returned nan values"),
            rule("invalid-math", 0.42, CHECKED),
            rule("exploding-gradients", 0.41, CHECKED),
            rule(
                "invalid-math",
                0.6,
                r"math domain error|(?:divide by zero|invalid value) encountered in (?:log|sqrt|true_divide|divide|power)",
            ),
            rule(
                "mixed-precision-overflow",
                0.9,
                r"without overflow|overflow.{0,40}(?:half|float16|fp16)|(?:half|float16|fp16)\b.{0,60}overflow",
            ),
            rule(
                "mixed-precision-overflow",
                0.82,
                r"loss scale already at minimum|Minimum loss scale reached|loss.?scale.{0,40}(?:reached|below).{0,20}min",
            ),
            rule(
                "mixed-precision-overflow",
                0.85,
                r"ZeroDivisionError|float division by zero",
                frames=r"apex[/\\]amp|loss_scal",
            ),
            rule(
                "batch-too-small-for-normalization",
                0.97,
                r"Expected more than 1 (?:value per channel|spatial element) when training",
            ),
            rule("learning-rate-too-high", 0.54, r"contain Inf/NaN\. Training has diverged"),
            rule("dtype-mismatch", 0.62, r"Attempting to unscale FP16 gradients"),
            # Detectron says when: some steps went well, so it is not the data, and it was not long.
            rule("learning-rate-too-high", 0.54, r"infinite or NaN at iteration=(?:[2-9]|\d{2,3})\b"),
            rule(
                "learning-rate-too-high",
                0.42,
                NAN_SYMPTOM + r"|loss (?:diverged|exploded)|training diverge",
            ),
            rule(
                "exploding-gradients",
                0.9,
                r"gradients? (?:norm )?(?:is |are |has )?explod|exploding gradient",
                unless=REMEDY,
            ),
            rule(
                "vanishing-gradients",
                0.85,
                r"gradients? (?:is |are |has |have )?vanish|vanishing gradient",
                unless=REMEDY,
            ),
            rule(
                "exploding-gradients",
                0.41,
                NAN_SYMPTOM
                + r"|gradient norm.{0,40}(?:nan|inf|non-finite)|norm of order .{0,40}gradients.{0,60}non-finite",
            ),
        ),
        rules(
            "output-loss-mismatch",
            (0.9, r"all elements of (?:input|target) should be between 0 and 1"),
            (0.9, r"input_val >= zero && input_val <= one|Assertion `\*?input >= 0\. && \*?input <= 1\.`"),
            (0.82, r"assertion failed: \[predictions must be [<>]= ?[01]\]"),
            (
                0.88,
                r"passing a target array of shape .{0,80} while using as loss|was passed for an output of shape .{0,80} while using as loss",
            ),
            (
                0.88,
                r"(?:logits` and `labels|labels` and `logits|target` and `output|Arguments `target` and `output)[^\n]{0,60}must have the same (?:shape|rank)",
            ),
            (0.75, r"multi-target not supported|Expected floating point type for target with class probabilities"),
        ),
        (
            rule(
                "output-loss-mismatch",
                0.72,
                r"Shapes \(.{0,40}\) and \(.{0,40}\) are incompatible",
                frames=r"loss|crossentropy",
            ),
            rule("output-loss-mismatch", 0.55, r"Shapes \(None,\s?\d*\) and \(None, \d+\) are incompatible"),
        ),
    )
)
LINES: tuple[Rule, ...] = flatten(
    (
        rules(
            "bad-input-values",
            (0.85, r"(?:Input|data|dataset|features?)\b.{0,40}\bcontains? (?:NaN|nan|Inf)"),
            (0.3, r"NaN or Inf found in input tensor"),
        ),
        rules(
            "invalid-math",
            (
                0.35,
                r"RuntimeWarning: (?:divide by zero|invalid value) encountered in (?:log|sqrt|true_divide|divide|power|scalar divide)",
            ),
        ),
        rules(
            "mixed-precision-overflow",
            (0.8, r"loss scale already at minimum"),
            (0.74, r"Gradient overflow\.\s+Skipping step.{0,80}reducing loss scale to (?:0\.0|[\d.]+e-\d)"),
            (0.3, r"OVERFLOW! .{0,40}Skipping step|Gradient overflow"),
        ),
        rules(
            "output-loss-mismatch",
            (0.5, r"Using a target size \(.{0,60}different to the input size"),
            (0.45, r"softmax over axis -1 of (?:inputs|a tensor).{0,80}size is 1"),
        ),
        rules("vanishing-gradients", (0.7, r"vanishing gradients? (?:was |were )?(?:detected|found)")),
        rules("exploding-gradients", (0.7, r"exploding gradients? (?:was |were )?(?:detected|found)")),
        rules(
            "dead-activations",
            (0.7, r"\b(?:[6-9]\d|100)(?:\.\d+)? ?% .{0,30}\bdead (?:ReLU|neuron|unit|activation)s?\b"),
        ),
        rules("input-starvation", (0.88, r"program is (?:HIGHLY|MODERATELY) input-bound")),
        rules("learning-rate-too-high", (0.42, r"Loss is (?:nan|inf), stopping training|loss (?:diverged|exploded)")),
    )
)
