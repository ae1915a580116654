from __future__ import annotations

from holdfast.causes.form import Below, CauseRecord, python, rule, says, shell, torch

CAUSE = CauseRecord(
    id="too-many-open-files",
    family="limits",
    title="Too many open files",
    meaning="The process reached its limit of open descriptors. Files that are opened and not closed, or tensors shared between workers, use them up.",
    sure="The system's own error (too many open files), or the count at the limit.",
    recipes=(
        python(
            "Close what is opened",
            "with open(path) as file:  # closes it at the end of the block\n    rows = file.readlines()",
        ),
        shell("Raise the limit for this shell", "ulimit -n 65536"),
        torch("Share tensors by file, not by descriptor", 'torch.multiprocessing.set_sharing_strategy("file_system")'),
    ),
    exceptions=(
        rule(
            0.96,
            says(
                r"\[Errno 24\]",
                ("CPython 3.11.7 with glibc 2.42, translated", "OSError: [Errno 24] Zu viele offene Dateien: 'a.npy'"),
            ),
            says(
                "Too many open files",
                ("glibc", "Too many open files in system"),
                ("CPython 3.11.7", "OSError: [Errno 24] Too many open files: '/dev/null'"),
            ),
        ),
        rule(
            0.88,
            says(r"received \d+ items of ancdata", ("torch 1.13", "RuntimeError: received 0 items of ancdata")),
        ),
    ),
    lines=(rule(0.85, says("Too many open files", ("glibc", "Too many open files in system"))),),
    ruled_out=(Below("job.open_files_count", "job.open_files_limit_count", "Open files"),),
)
