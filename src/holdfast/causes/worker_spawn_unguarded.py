from __future__ import annotations

from holdfast.causes.form import CauseRecord, python, rule, says

CAUSE = CauseRecord(
    id="worker-spawn-unguarded",
    family="process",
    title="Workers start the whole script again",
    meaning="Each new process imports the script, and the script starts training at import. What starts processes has to stand below the main guard.",
    sure="Python's own message about the bootstrapping phase.",
    recipes=(
        python("Put what runs below the guard", 'def main():\n    train()\n\nif __name__ == "__main__":\n    main()'),
    ),
    exceptions=(
        rule(
            0.97,
            r"before the\s+current process has finished its bootstrapping",
            says(
                r"freeze_support\(\)",
                ("a log shown in public", "The “freeze_support()” line can be omitted if the program"),
            ),
        ),
    ),
    lines=(
        rule(
            0.9,
            r"before the\s+current process has finished its bootstrapping",
            says(
                r"freeze_support\(\)",
                ("a log shown in public", "The “freeze_support()” line can be omitted if the program"),
            ),
        ),
    ),
    last_frames=((0.85, r"_check_not_importing_main\("),),
)
