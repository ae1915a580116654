from __future__ import annotations

from holdfast.causes.form import CauseRecord, jax, keras, torch, words

CAUSE = CauseRecord(
    id="gpu-memory-leak",
    family="memory",
    title="GPU memory leaks with every step",
    meaning="Tensors, often with the graph that made them, are kept from every step. The card fills up although each step is small.",
    sure="Allocated GPU memory grows in proportion to the steps.",
    explains=("gpu-memory-exhausted",),
    recipes=(
        words("Let go of what is kept there", "$holder  # clear it, or keep only the last few"),
        torch("Keep a number, not the tensor with its graph", "losses.append(loss.item())"),
        torch("Keep results off the card", "outputs.append(output.detach().cpu())"),
        keras("Keep a number, not the tensor", "losses.append(float(loss))"),
        jax("Keep results off the card", "outputs.append(jax.device_get(output))"),
    ),
)
