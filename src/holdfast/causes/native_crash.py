from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, rule, says, shell, words

HEAP = (
    says(r"free\(\): ", ("glibc", "free(): unaligned chunk detected in tcache 2")),
    says(r"malloc\(\): ", ("glibc", "malloc(): largebin double linked list corrupted (nextsize)")),
    says(r"realloc\(\): ", ("glibc", "realloc(): invalid next size")),
    says(r"munmap_chunk\(\)", ("glibc", "munmap_chunk(): invalid pointer")),
    "double free",
    says("corrupted (?:size|double|unsorted)", ("glibc", "corrupted size vs. prev_size while consolidating")),
    "(?:or|memory) corruption",
    says("stack smashing", ("glibc", "stack smashing detected")),
)
CRASHED = (
    says("段错误", ("bash 5 with glibc 2.42, translated", "段错误 (核心已转储)")),
    r"已放弃 ?\(",
    r"中止 ?\(コアダンプ",
    says(
        "Speicherzugriffsfehler",
        ("bash 5 with glibc 2.42, translated", "Speicherzugriffsfehler (Speicherabzug geschrieben)"),
    ),
    "Erreur de segmentation",
    says(
        "Ошибка сегментирования",
        ("bash 5 with glibc 2.42, translated", "Ошибка сегментирования (стек памяти сброшен на диск)"),
    ),
    "세그멘테이션",
    says("Segmentation fault", ("numpy 2.4.6", "Segmentation fault - invalid memory reference")),
    "SIGSEGV",
    r"^Aborted\b(?! by)",
    r"\d Aborted\b",
    r"Aborted \(core",
    r"\*\*\* Aborted at \d",
    r"\*\*\* SIG(?:SEGV|ABRT|BUS|FPE|ILL)\b.{0,20} received by",
    "SIGABRT",
    says("Floating point exception", ("glibc", "Floating point exception")),
    "access violation",
    "0xC0000005",
    "core dumped",
    says(
        "terminate called", ("C++ runtime (libstdc++)", "terminate called after throwing an instance of 'c10::Error'")
    ),
    says("pure virtual method called", ("C++ runtime (libstdc++)", "pure virtual method called")),
    r"exit ?code:? 13[49]\b",
    r"exitcode\s{0,4}: -(?:6|11)\b",
    says(
        "Check failed:",
        ("torch 2.13.0", "Check failed: g_copy_bytes[0][from][to] == nullptr && g_copy_bytes[1][from][to] == nullptr"),
    ),
    "-1073741819",
    "3221225477",
    r"0xC0000(?:409|374|0FD)\b",
    "-10737(?:40791|40940|41571)",
    "32212(?:26505|26356)",
)
CAUSE = CauseRecord(
    id="native-crash",
    family="process",
    title="Native code crashed",
    meaning="A library written in C, C++ or CUDA broke; Python had no chance to raise an exception. Mismatched packages and bad memory accesses are the usual reasons.",
    sure="The signal, and no better explanation of it: no memory limit, no full /dev/shm, no clashing libraries.",
    symptom=True,
    echo=True,
    restart=RestartAdvice(RestartKind.ONCE, "native code crashed"),
    recipes=(
        words("Look at the code it came from", "the innermost Python frame is $frame"),
        shell("Get the Python stack", "python -X faulthandler train.py"),
        shell("Get the native stack", "gdb -batch -ex run -ex bt --args python train.py"),
        shell("Rule out mismatched packages", "pip check"),
    ),
    lines=(
        rule(0.62, r"\[\d+\]: segfault at", "segfault at [0-9a-f]+ ip"),
        rule(0.63, *HEAP),
        rule(0.6, *CRASHED),
    ),
    signals={signal.SIGABRT: 0.6, signal.SIGBUS: 0.4, signal.SIGFPE: 0.6, signal.SIGSEGV: 0.6},
)
