from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, says

CAUSE = CauseRecord(
    id="interrupted",
    family="process",
    title="Interrupted",
    meaning="Somebody pressed Ctrl-C or sent SIGINT. Nothing was wrong with the run.",
    sure="KeyboardInterrupt or SIGINT.",
    asked_to_stop=True,
    exceptions=(
        rule(0.9, "^", types="KeyboardInterrupt"),
        rule(0.85, r"got signal: 2\b", types="SignalException"),
    ),
    lines=(
        rule(0.6, r"^\^C$", r"\d(?:s/it|it/s)[^\n]{0,200}\]\^C$", r"exit code 130\b"),
        rule(0.66, r"^\^CTraceback \(most recent call last\)"),
        rule(0.85, r"got signal: 2\b"),
        rule(
            0.8,
            r"^\^C.{0,80}(?:[Ss]top|[Ii]nterrupt|signal)",
            says(
                "[Ss]top signal received",
                (
                    "ray ray-0.7.0",
                    "Stop signal received (e.g. via SIGINT/Ctrl+C), ending Ray Tune run. This will try to checkpoint the experiment state one last time. Press CTRL+C (or send SIGINT/SIGKILL/SIGTERM) to skip.",
                ),
            ),
            says(
                "(?:received|caught) SIGINT",
                ("ray ray-0.7.0", "Received SIGINT at least 3 times. Forcefully aborting the training run."),
            ),
        ),
    ),
)
