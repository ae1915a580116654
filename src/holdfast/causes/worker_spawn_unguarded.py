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
            says(
                "current process has finished its bootstrapping phase",
                (
                    "CPython 3.11.7",
                    "RuntimeError: \n        An attempt has been made to start a new process before the\n        current process has finished its bootstrapping phase.\n\n        This probably means that you are not using fork to start your\n        child processes and you have forgotten to use the proper idiom\n        in the main module:\n\n            if __name__ == '__main__':\n                freeze_support()\n                ...\n\n        The \"freeze_support()\" line can be omitted if the program\n        is not going to be frozen to produce an executable.",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.9,
            "current process has finished its bootstrapping phase",
        ),
    ),
    last_frames=((0.85, r"_check_not_importing_main\("),),
)
