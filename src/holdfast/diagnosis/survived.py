"""What a run that finished had to survive on the way."""

from __future__ import annotations

from holdfast.vocabulary import Event, Evidence, Finding, Window

GPU_WORDS = ("GPU", "CUDA", "cuda", "HIP", "gpu")


def earlier_attempts(window: Window) -> list[Window]:
    """Each attempt that was followed by another one, as a window that ends with it."""
    return [_until(window, event) for event in window.events("attempt.exit")]


def _until(window: Window, ended: Event) -> Window:
    data = {"code": ended.data.get("code") or 0, "signal": ended.data.get("signal")}
    data["code"] = data["code"] or (128 + int(data["signal"]) if data["signal"] else 1)
    starts = [event.at for event in window.events("attempt.start") if event.at <= ended.at]
    begun = starts[-1] if len(starts) > 1 else float("-inf")
    lasting = ("run.start", "machine", "cgroup.found", "probe.missing", "framework")
    events = [
        e for e in window.events() if (begun <= e.at <= ended.at or e.kind in lasting) and e.kind != "script.exit"
    ]
    series = {name: [s for s in window.series(name) if s.at <= ended.at] for name in window.names()}
    output = {stream: window.output(stream) for stream in window.streams()}
    return Window([*events, Event("script.exit", ended.at, data)], series, output)


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
