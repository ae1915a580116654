from __future__ import annotations

from holdfast.causes.form import CauseRecord, jax, keras, near, rule, says, torch

CAUSE = CauseRecord(
    id="mixed-precision-overflow",
    family="numerics",
    title="Half precision overflows",
    meaning="A value went beyond what 16 bits hold (65,504 in float16), or a gradient fell to zero. The same model in float32 or bfloat16 is fine.",
    sure="Infinity comes before NaN in a 16-bit tensor, or the loss scale fell to its minimum.",
    says_more_than=("exploding-gradients", "invalid-math"),
    in_passing=True,
    recipes=(
        torch(
            "Use bfloat16, which has float32's range",
            'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = loss_function(model(x), y)',
        ),
        keras("Use bfloat16, which has float32's range", 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'),
        jax("Use bfloat16, which has float32's range", "x = x.astype(jnp.bfloat16)"),
        torch("Scale the loss", 'scaler = torch.amp.GradScaler("cuda")'),
    ),
    exceptions=(
        rule(
            0.9,
            says(
                "(?:half|bfloat16) without overflow",
                near("torch 2.13.0", "RuntimeError: value cannot be converted to type int8_t without overflow"),
            ),
            "overflow.{0,40}(?:half|float16|fp16)",
            r"(?:half|float16|fp16)\b.{0,60}overflow",
        ),
        rule(
            0.82,
            says(
                "loss scale already at minimum",
                (
                    "DeepSpeed 0.16",
                    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
                ),
            ),
            says(
                "Minimum loss scale reached",
                (
                    "fairseq v0.9.0",
                    "FloatingPointError: AMP: Minimum loss scale reached (3). Your loss is probably exploding. Try restarting training or use fp32. 3",
                ),
            ),
            "loss.?scale.{0,40}(?:reached|below).{0,20}min",
        ),
        rule(0.85, "ZeroDivisionError", "float division by zero", frames=r"apex[/\\]amp|loss_scal"),
    ),
    lines=(
        rule(
            0.8,
            says(
                "loss scale already at minimum",
                (
                    "DeepSpeed 0.16",
                    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
                ),
            ),
        ),
        rule(
            0.74,
            says(
                r"Gradient overflow\.\s+Skipping step.{0,80}reducing loss scale to (?:0\.0|[\d.]+e-\d)",
                (
                    "apex 0.1",
                    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 9.313225746154785e-10",
                ),
            ),
        ),
        rule(
            0.3,
            says(
                "OVERFLOW! .{0,40}Skipping step",
                (
                    "DeepSpeed 0.16",
                    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
                ),
            ),
            says("Gradient overflow", ("fairseq v0.9.0", "NOTE: gradient overflow detected, ignoring gradient, 3")),
        ),
    ),
)
