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
        torch(
            "Square and sum in float32",
            "mean = x.float().pow(2).mean(-1, keepdim=True)\nx = (x.float() * torch.rsqrt(mean + 1e-5)).to(x.dtype)",
            said="was given infinity",
        ),
        keras("Use bfloat16, which has float32's range", 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'),
        jax("Use bfloat16, which has float32's range", "x = x.astype(jnp.bfloat16)"),
        torch(
            "Scale the loss",
            'scaler = torch.amp.GradScaler("cuda")',
            unsaid="it began in the (?:forward pass|loss function)|was given infinity",  # a scaled loss is larger still
        ),
    ),
    exceptions=(
        rule(
            0.9,
            says(
                "(?:half|bfloat16) without overflow",
                near("torch 2.13.0", "RuntimeError: value cannot be converted to type int8_t without overflow"),
                ("torch 2.13.0", "RuntimeError: value cannot be converted to type c10::Half without overflow"),
            ),
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
        ),
        rule(
            0.85,
            says(
                "float division by zero",
                (
                    "apex 0.1",
                    'Traceback (most recent call last):\n  File "train.py", line 227, in train\n    scaled_loss.backward()\n  File "/venv/lib/python3.6/contextlib.py", line 88, in __exit__\n    next(self.gen)\n  File "/venv/lib/python3.6/site-packages/apex/amp/handle.py", line 123, in scale_loss\n    optimizer._post_amp_backward(loss_scaler)\n  File "/venv/lib/python3.6/site-packages/apex/amp/scaler.py", line 176, in unscale_with_stashed\n    out_scale/grads_have_scale,   # 1./scale,\nZeroDivisionError: float division by zero',
                ),
            ),
            frames=r"apex[/\\]amp|loss_scal",
        ),
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
