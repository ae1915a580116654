from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, Restart, RestartKind, Room, Unmoved, rule, shell
from holdfast.causes.shared.recipes import BY_KIND, SMALLER_STEP
from holdfast.causes.shared.words import HOST_WORDS, KILLED, SHM

# In the languages of those who report it.
PAGING_FILE = (
    "WinError 1455",
    "paging file is too small",
    "页面文件太小",
    "Auslagerungsdatei ist zu klein",
    "fichier de pagination est (?:insuffisant|trop petit)",
    "archivo de paginaci[oó]n es demasiado",
    "файл подкачки слишком мал",
    "arquivo de paginação é muito",
)
CAUSE = CauseRecord(
    id="host-memory-exhausted",
    family="memory",
    title="The machine ran out of memory",
    meaning="The job needed more RAM than the machine could give. Either an allocation failed, or the kernel killed the process.",
    sure="The kernel's log names the kill, or the allocation's own error names the host's memory.",
    restart=Restart(RestartKind.SMALLER_STEPS, "killed for memory"),
    ran_out="host",
    of_the_system=True,
    recipes=(*BY_KIND, *SMALLER_STEP, shell("See what else holds memory", "ps -eo pid,rss,comm --sort=-rss | head")),
    exceptions=(
        rule(0.9, "^", types="MemoryError _ArrayMemoryError ArrowMemoryError"),
        rule(0.9, *HOST_WORDS, unless=SHM + "|CUDA|static TLS"),
        rule(0.9, "Java heap space", "GC overhead limit"),
        rule(0.6, r"unable to mmap \d+ bytes[\s\S]{0,80}Cannot allocate memory"),
        rule(
            0.9,
            r"(?:OOM when allocating|failed to allocate|Out of memory)[\s\S]{0,400}(?:device:CPU|allocator (?:mkl)?cpu)",
            unless=r"device:GPU|GPU_\d_bfc",
        ),
        rule(0.42, "OOM when allocating", "failed to allocate", types="ResourceExhaustedError"),
        rule(
            0.9,
            "node running low on memory",
            "memory pressure",
            "killed due to the node",
            types="OutOfMemoryError OwnerDiedError WorkerCrashedError RayTaskError",
        ),
        rule(0.92, *PAGING_FILE),
        rule(
            0.6,
            r"\bout of (?:host |system |CPU )?memory\b",
            r"(?:failed|unable) to allocate (?:memory|\d)",
            "insufficient memory",
            unless="GPU|CUDA|cuda|device|shared",
        ),
    ),
    lines=(
        rule(0.95, "oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)"),
        rule(0.94, r"Out of memory: Kill(?:ed)? process \d+ \("),
        rule(0.86, r"\bKilled process \d+ \([^)\n]{1,40}\),? (?:UID:? ?\d+,? )?(?:total-vm|anon-rss)"),
        rule(0.9, "session crashed after using all available RAM", "tried to allocate more memory than is available"),
        rule(0.9, "low on resource: memory", "killed due to memory pressure", "node running low on memory"),
        rule(0.88, "(?:earlyoom|systemd-oomd).{0,80}(?:kill|SIGTERM)", r"sending SIG\w+ to process \d+ .{0,80}badness"),
        rule(0.72, "invoked oom-killer"),
        rule(0.85, "std::bad_alloc", "(?<!CUDA )Cannot allocate memory$", "Cannot allocate memory(?! in static)"),
        rule(0.9, "Java heap space", "GC overhead limit exceeded"),
        rule(0.85, "mmap(?:ing)? (?:failed|error).{0,40}(?:memory|ENOMEM)", r"out of memory allocating \d+ bytes"),
        rule(0.8, r"Unable to allocate [\d.]+ [KMGT]iB for an array"),
        rule(0.4, r"Allocation of \d+ exceeds \d+% of (?:free )?system memory"),
        rule(
            0.45,
            *KILLED,
            r"signal 9\b",
            "SIGKILL",
            "exit(?:ed with)? ?(?:code|status)?:? 137",
            "<Signals.SIGKILL",
            r"exitcode\s{0,4}: -9\b",
            r"return ?code =? ?-9\b",
        ),
        rule(0.88, *PAGING_FILE),
    ),
    signals={signal.SIGKILL: 0.45},
    ruled_out=(
        Unmoved(
            ("host.oom_kill_count", "cgroup.oom_kill_count"), "A kill for memory: the kernel's counters did not move."
        ),
        Room("host.memory_available_bytes", "host.memory_total_bytes", "The machine's memory"),
    ),
)
