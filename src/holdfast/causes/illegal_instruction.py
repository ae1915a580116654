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
            says(
                "built using AVX",
                (
                    "jaxlib 0.4",
                    "RuntimeError: This version of jaxlib was built using AVX instructions, which your CPU and/or operating system do not support. You may be able work around this issue by building jaxlib from source.",
                ),
            ),
            says(
                r"(?<!wasn't )compiled to use (?:AVX|SSE)\w* instructions",
                (
                    "tensorflow 1.15",
                    "2020-04-19 15:00:35.785929: F tensorflow/core/platform/cpu_feature_guard.cc:37] The TensorFlow library was compiled to use AVX instructions, but these aren't available on your machine.",
                ),
                near(
                    "tensorflow 1.3",
                    "2018-08-08 14:50:20.015922: W tensorflow/core/platform/cpu_feature_guard.cc:45] The TensorFlow library wasn't compiled to use AVX instructions, but these are available on your machine and could speed up CPU computations.",
                ),
            ),
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
            says(
                "(?<!such as )SIGILL",
                near("jaxlib 0.10.2", "This could lead to execution errors such as SIGILL."),
                ("torch 2.13.0", "  traceback : Signal 4 (SIGILL) received by PID 26118"),
            ),
            says("exit code 132", ("GitHub Actions runner", "Error: Process completed with exit code 132.")),
            says(
                r"(?:-1073741795|3221225501|0xC000001D)\b",
                ("PyCharm on Windows 10", "Process finished with exit code -1073741795 (0xC000001D)"),
            ),
            r"(?<!wasn't )compiled to use (?:AVX|SSE)\w* instructions",
            says(
                "trap invalid opcode",
                (
                    "Linux 6.18",
                    "[24008.853208] traps: python[24689] trap invalid opcode ip:562dbc189206 sp:7ffd6f106f40 error:0 in _pywrap_tensorflow_internal.so[1206,562dbc189000+1000]",
                ),
            ),
        ),
    ),
    signals={signal.SIGILL: 0.9},
)
