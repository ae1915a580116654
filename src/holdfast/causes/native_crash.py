from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, rule, says, shell, words

HEAP = (
    says(r"free\(\): ", ("glibc", "free(): unaligned chunk detected in tcache 2")),
    says(r"malloc\(\): ", ("glibc", "malloc(): largebin double linked list corrupted (nextsize)")),
    says(r"realloc\(\): ", ("glibc", "realloc(): invalid next size")),
    says(r"munmap_chunk\(\)", ("glibc", "munmap_chunk(): invalid pointer")),
    says("double free", ("glibc 2.36", "double free or corruption (!prev)")),
    says("corrupted (?:size|double|unsorted)", ("glibc", "corrupted size vs. prev_size while consolidating")),
    says("stack smashing", ("glibc 2.36", "*** stack smashing detected ***: terminated")),
)
CRASHED = (
    says("段错误", ("bash 5 with glibc 2.42, translated", "段错误 (核心已转储)")),
    says("已放弃 *[(（]", ("bash 5.2 with glibc 2.36, translated", "已放弃（核心已转储）")),
    says(
        r"中止 *\(コアダンプ",
        (
            "bash 5.2 with glibc 2.36, translated",
            "train.sh: 2 行: 27277 中止                  (コアダンプ) python train.py",
        ),
    ),
    says(
        "Speicherzugriffsfehler",
        ("bash 5 with glibc 2.42, translated", "Speicherzugriffsfehler (Speicherabzug geschrieben)"),
    ),
    says(
        "Erreur de segmentation",
        ("bash 5.2 with glibc 2.36, translated", "train.sh : ligne 1 : 26547 Erreur de segmentation  python train.py"),
    ),
    says(
        "Ошибка сегментирования",
        ("bash 5 with glibc 2.42, translated", "Ошибка сегментирования (стек памяти сброшен на диск)"),
    ),
    says(
        "세그멘테이션",
        ("bash 5.2 with glibc 2.36, translated", "train.sh: 줄 1: 26761 세그멘테이션 오류 python train.py"),
    ),
    says("Segmentation fault", ("numpy 2.4.6", "Segmentation fault - invalid memory reference")),
    says("SIGSEGV", ("torch 2.13.0", "  traceback : Signal 11 (SIGSEGV) received by PID 25772")),
    says(r"^Aborted\b(?! by)", ("bash 5.2 with glibc 2.36", "Aborted")),
    says(
        r"\d Aborted\b", ("bash 5.2 with glibc 2.36", "train.sh: line 1: 24688 Aborted                 python train.py")
    ),
    says(
        r"\*\*\* Aborted at \d",
        ("glog 0.4", '*** Aborted at 1531880485 (unix time) try "date -d @1531880485" if you are using GNU date ***'),
    ),
    says(
        r"\*\*\* SIG(?:BUS|FPE)\b.{0,20} received by",
        (
            "glog 0.3",
            "*** SIGFPE (@0x7f0a530628fd) received by PID 20545 (TID 0x7f0a6d231740) from PID 1392912637; stack trace: ***",
        ),
    ),
    says("SIGABRT", ("torch 2.13.0", "  traceback : Signal 6 (SIGABRT) received by PID 25987")),
    says("Floating point exception", ("glibc", "Floating point exception")),
    says("access violation", ("CPython 3 on Windows", "Windows fatal exception: access violation")),
    says("core dumped", ("bash 5.2 with glibc 2.36", "Trace/breakpoint trap (core dumped)")),
    says(
        "terminate called", ("C++ runtime (libstdc++)", "terminate called after throwing an instance of 'c10::Error'")
    ),
    says("pure virtual method called", ("C++ runtime (libstdc++)", "pure virtual method called")),
    says(r"exit ?code:? 13[49]\b", ("GitHub Actions runner", "Error: Process completed with exit code 139.")),
    says(r"exitcode\s{0,4}: -(?:6|11)\b", ("torch 1.13", "  exitcode  : -6 (pid: 56213)")),
    says(
        "Check failed:",
        ("torch 2.13.0", "Check failed: g_copy_bytes[0][from][to] == nullptr && g_copy_bytes[1][from][to] == nullptr"),
    ),
    says(
        r"(?:-1073741819|3221225477|0xC0000005)\b",
        ("PyCharm on Windows 10", "Process finished with exit code -1073741819 (0xC0000005)"),
        (
            "accelerate 0.25 on Windows",
            "subprocess.CalledProcessError: Command '['C:\\\\kohya_ss\\\\venv\\\\Scripts\\\\python.exe', 'C:/kohya_ss/sd-scripts/sdxl_train_network.py', '--config_file', 'C:/kohya/config_lora-20240531-133245.toml']' returned non-zero exit status 3221225477.",
        ),
    ),
    says(
        r"(?:-10737(?:40791|40940|41571)|32212(?:26505|26356|25725)|0xC0000(?:409|374|0FD))\b",
        ("PyCharm on Windows 10", "Process finished with exit code -1073740791 (0xC0000409)"),
        (
            "Go 1.16 on Windows",
            "go build math: C:\\go\\go1.16.3\\pkg\\tool\\windows_amd64\\compile.exe: exit status 3221226505",
        ),
    ),
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
    # A launcher names its child's end in an exception of its own.
    exceptions=(rule(0.6, *CRASHED, types="CalledProcessError"),),
    lines=(
        rule(
            0.62,
            says(
                "segfault at [0-9a-f]+ ip",
                (
                    "Linux 6.18",
                    "[24008.801088] python[24687]: segfault at 0 ip 00005568b12b31f9 sp 00007ffe92bc61d0 error 6 in python3.11[11f9,5568b12b3000+1000] likely on CPU 0 (core 0, socket 0)",
                ),
            ),
        ),
        rule(0.63, *HEAP),
        rule(0.6, *CRASHED),
    ),
    signals={signal.SIGABRT: 0.6, signal.SIGBUS: 0.4, signal.SIGFPE: 0.6, signal.SIGSEGV: 0.6},
)
