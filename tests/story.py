"""A recorded run in a few words, for tests of what is read from one."""

from __future__ import annotations

from holdfast.vocabulary import Event, Sample, Window

START = 1_000_000.0
GIB = float(1 << 30)
STEPS = "_step_count"


def story(
    code: int | None = None,
    signal: int | None = None,
    output: dict[str, bytes] | None = None,
    events: list[Event] | None = None,
    kernel_log: bool = True,
    **series: list[float | None],
) -> Window:
    """Samples are one a second; `host__memory_available_bytes` stands for `host.memory_available_bytes`.

    `train__loss_step_count` are the steps that the samples of `train__loss` belong to.
    """
    told = [
        Event("run.start", START, {"command": ["python", "train.py"], "script_pid": 100}),
        Event("machine", START, {"boot_id": "then", "pid_namespace": "initial"}),
        Event("process.appeared", START, {"pid": 100, "name": "python"}),
        *(events or []),
    ]
    if not kernel_log:
        told.append(Event("probe.missing", START, {"probe": "kernel_log", "reason": "not permitted"}))
    if code is not None:
        told.append(Event("script.exit", START + 60, {"code": code, "signal": signal}))
    samples = {}
    for name, values in series.items():
        if name.removesuffix(STEPS) in series and name.endswith(STEPS):
            continue
        steps = series.get(f"{name}{STEPS}", [None] * len(values))
        samples[name.replace("__", ".")] = [
            Sample(
                name.replace("__", "."),
                value,
                START + i,
                "" if value is not None else "missing",
                None if step is None else int(step),
            )
            for i, (value, step) in enumerate(zip(values, steps, strict=True))
        ]
    return Window(told, samples, output)


def kernel(text: str, at: float = START + 59) -> Event:
    return Event("kernel.line", at, {"text": text})
