"""What a run that finished had to survive on the way."""

from __future__ import annotations

from holdfast.vocabulary import Evidence, Finding, Window

GPU_WORDS = ("GPU", "CUDA", "cuda", "HIP", "gpu")


def rescued(window: Window) -> Finding | None:
    """Out of memory that was caught in the step and done in smaller pieces."""
    caught = window.events("rescue.caught")
    if not caught:
        return None
    first, pieces = caught[0], [int(event.data["k"]) for event in window.events("rescue.k") if event.data.get("k")]
    wanted = str(first.data.get("wanted", ""))
    on_gpu = any(word in wanted for word in GPU_WORDS)
    cause = "gpu-memory-exhausted" if on_gpu else "host-memory-exhausted"
    evidence = [
        Evidence(f"step {first.data.get('step', '?')} ran out of memory: {wanted}".rstrip(": "), "telemetry", first.at)
    ]
    if pieces:
        evidence.append(
            Evidence(
                f"it went on in {pieces[-1]} micro-batches with the same effective batch",
                "telemetry",
                first.at,
                pieces[-1],
            )
        )
    where = "The GPU" if on_gpu else "Host memory"
    return Finding(
        cause, 0.92, tuple(evidence), {"headline": f"{where} was too small for a batch; it was trained in pieces"}
    )
