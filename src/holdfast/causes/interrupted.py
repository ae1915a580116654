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
        rule(
            0.9,
            says(
                "^",
                (
                    "CPython 3.11.7",
                    'Traceback (most recent call last):\n  File "/home/user/train.py", line 2, in <module>\n    time.sleep(30)\nKeyboardInterrupt',
                ),
            ),
            types="KeyboardInterrupt",
        ),
        rule(
            0.85,
            says(
                r"got signal: 2\b",
                (
                    "torch 2.13.0",
                    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 24765 got signal: 2",
                ),
            ),
            types="SignalException",
        ),
    ),
    lines=(
        rule(
            0.6,
            says(r"^\^C$", ("a terminal that echoes Ctrl-C", "^C")),
            says(
                r"\d(?:s/it|it/s)[^\n]{0,200}\]\^C$",
                (
                    "tqdm 4.70.1 on a terminal",
                    "  2%|▊                                         | 2/100 [00:01<00:49,  1.98it/s]^C",
                ),
            ),
            says(r"exit code 130\b", ("GitHub Actions runner", "Error: Process completed with exit code 130.")),
        ),
        rule(
            0.66,
            says(
                r"^\^CTraceback \(most recent call last\)",
                ("CPython 3.11.7 on a terminal", "^CTraceback (most recent call last):"),
            ),
        ),
        rule(0.85, r"got signal: 2\b"),
        rule(
            0.8,
            says(
                r"^\^C.{0,160}(?:[Ss]top|[Ii]nterrupt|signal)",
                (
                    "torch 2.13.0 on a terminal",
                    "^CW1116 10:12:48.133000 29337 torch/distributed/elastic/agent/server/api.py:753] Received 2 death signal, shutting down workers",
                ),
            ),
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
