from __future__ import annotations

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, jax, keras, torch, words

HELD = "held by "  # it is known by whom
NO_TENSORS = r"more (?:arrays|models|\w+ objects)"
CAUSE = CauseRecord(
    id="host-memory-leak",
    family="memory",
    title="Memory leaks with every step",
    meaning="Something is kept from every step and never let go. The longer it trains, the more it holds, until it is killed.",
    sure="Resident memory grows in proportion to the steps long after warm-up, and nothing is given back.",
    explains=("container-memory-limit", "host-memory-exhausted", "swap-thrash"),
    restart=RestartAdvice(RestartKind.EMPTY_MEMORY, "killed for memory after a leak"),
    recipes=(
        words("Let go of what is kept there", "$holder  # clear it, or keep only the last few"),
        torch("Keep a number, not the tensor with its graph", "losses.append(loss.item())", unsaid=NO_TENSORS),
        torch("Measure without graphs", "with torch.no_grad():\n    validate(model)", unsaid=HELD),
        keras("Keep a number, not the tensor", "losses.append(float(loss))", unsaid=NO_TENSORS),
        keras(
            "Give tensors, not Python numbers, to a tf.function: each number is a trace",
            "train_step(x, tf.constant(rate))  # was train_step(x, rate)",
            unsaid=HELD,
        ),
        jax("Keep a number, not the array", "losses.append(float(loss))"),
    ),
)
