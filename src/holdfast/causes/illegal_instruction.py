from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, near, rule, says, shell

CAUSE = CauseRecord(
    id="illegal-instruction",
    family="process",
    title="The program uses instructions this CPU does not have",
    meaning="A library was built for a newer CPU than this one. Only another build of it, or another machine, helps.",
    sure="SIGILL, or the library's own message.",
    recipes=(
        shell("See what this CPU can do", "grep -o -m1 -E 'avx512f|avx2|avx|sse4_2' /proc/cpuinfo"),
        shell("Install a build for this CPU", "pip install --force-reinstall --no-binary :all: PACKAGE"),
    ),
    exceptions=(
        rule(
            0.97,
            "built using AVX",
            r"compiled to use (?:AVX|SSE)\w* instructions",
            says(
                "(?<!an )Illegal instruction",
                ("bash 5 with glibc 2.42", "Illegal instruction (core dumped)"),
                ("CPython 3.11.7", "Fatal Python error: Illegal instruction"),
                near(
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: an illegal instruction was encountered",
                ),
            ),
        ),
    ),
    lines=(
        rule(
            0.95,
            says(
                "(?<!an )Illegal instruction",
                ("bash 5 with glibc 2.42", "Illegal instruction (core dumped)"),
                ("CPython 3.11.7", "Fatal Python error: Illegal instruction"),
                near(
                    "torch 2.13.0, CUDA runtime 12.9.79",
                    "RuntimeError: CUDA error: an illegal instruction was encountered",
                ),
            ),
            says("非法指令", ("bash 5 with glibc 2.42, translated", "非法指令 (核心已转储)")),
            says("(?<!such as )SIGILL", near("jaxlib 0.10.2", "This could lead to execution errors such as SIGILL.")),
            r"exitcode\s{0,4}: -4\b",
            "exit code 132",
            "0xC000001D",
            r"compiled to use (?:AVX|SSE)\w* instructions",
            "trap invalid opcode",
        ),
    ),
    signals={signal.SIGILL: 0.9},
)
