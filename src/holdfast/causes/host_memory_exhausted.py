from __future__ import annotations

import signal

from holdfast.causes.form import CauseRecord, RestartAdvice, RestartKind, Room, Unmoved, near, rule, says, shell
from holdfast.causes.shared.recipes import BY_KIND, SMALLER_STEP, STREAM_THE_FILE
from holdfast.causes.shared.words import HOST_WORDS, KILLED, SHM, SIGKILL_REPORTED

# In the languages of those who report it.
PAGING_FILE = (
    says(
        "WinError 1455",
        (
            "Windows 10, translated",
            "OSError: [WinError 1455] ページング ファイルが小さすぎるため、この操作を完了できません。",
        ),
    ),
    says(
        "paging file is too small",
        ("Windows 10", "The paging file is too small for this operation to complete (DOS error/errno=1455)"),
    ),
    says("页面文件太小", ("Windows 10, translated", "页面文件太小，无法完成操作。 (os error 1455)")),
    says(
        "Auslagerungsdatei ist zu klein",
        (
            "Windows 10, translated",
            "error='Die Auslagerungsdatei ist zu klein, um diesen Vorgang durchzuführen' (DOS error/errno=1455)",
        ),
    ),
    says(
        "fichier de pagination est (?:insuffisant|trop petit)",
        (
            "Windows 10, translated",
            "OSError: Le fichier de pagination est insuffisant pour terminer cette opération. (os error 1455)",
        ),
    ),
    says(
        "archivo de paginaci[oó]n es demasiado",
        (
            "Windows 10, translated",
            "OSError: El archivo de paginación es demasiado pequeño para completar la operación. (os error 1455)",
        ),
    ),
    says(
        "файл подкачки слишком мал",
        ("Windows 10, translated", "OSError: Файл подкачки слишком мал для завершения операции. (os error 1455)"),
    ),
    says(
        "arquivo de paginação é muito",
        (
            "Windows 10, translated",
            "OSError: O arquivo de paginação é muito pequeno para que esta operação seja concluída. (os error 1455)",
        ),
    ),
)
CAUSE = CauseRecord(
    id="host-memory-exhausted",
    family="memory",
    title="The machine ran out of memory",
    meaning="The job needed more RAM than the machine could give. Either an allocation failed, or the kernel killed the process.",
    sure="The kernel's log names the kill, or the allocation's own error names the host's memory.",
    restart=RestartAdvice(RestartKind.SMALLER_STEPS, "killed for memory"),
    ran_out="host",
    of_the_system=True,
    recipes=(
        *BY_KIND,
        *STREAM_THE_FILE,
        *SMALLER_STEP,
        shell("See what else holds memory", "ps -eo pid,rss,comm --sort=-rss | head"),
    ),
    exceptions=(
        rule(0.9, says("^", ("CPython 3.11.7", "MemoryError")), types="MemoryError _ArrayMemoryError ArrowMemoryError"),
        rule(0.9, *HOST_WORDS, unless=SHM + "|CUDA|static TLS"),
        rule(
            0.9,
            says(
                "Error tokenizing data.{0,20}out of memory",
                ("pandas 3.0.6", "ParserError: Error tokenizing data. C error: out of memory"),
            ),
        ),
        rule(
            0.9,
            says("Java heap space", ("Java 8", "java.lang.OutOfMemoryError: Java heap space")),
            says("GC overhead limit", ("Java 8", "java.lang.OutOfMemoryError: GC overhead limit exceeded")),
        ),
        # XLA's CPU client; a GPU's allocator says "while trying to allocate".
        rule(
            0.9,
            says(
                r"RESOURCE_EXHAUSTED: Out of memory allocating \d+ bytes\.",
                (
                    "jax 0.10.2",
                    "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 4000000000000000000 bytes.",
                ),
                near(
                    "a log shown in public",
                    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.",
                ),
            ),
        ),
        rule(
            0.6,
            says(
                r"unable to mmap \d+ bytes[\s\S]{0,80}Cannot allocate memory",
                (
                    "torch 1.13",
                    "RuntimeError: unable to mmap 608 bytes from file </torch_207329_3205365369_64763>: Cannot allocate memory (12)",
                ),
            ),
        ),
        rule(
            0.9,
            says(
                r"(?:OOM when allocating|failed to allocate|Out of memory)[\s\S]{0,400}(?:device:CPU|allocator (?:mkl)?cpu)",
                (
                    "tensorflow 2.21.0",
                    "ResourceExhaustedError: {{function_node __wrapped__Fill_device_/job:localhost/replica:0/task:0/device:CPU:0}} OOM when allocating tensor with shape[1000000000000,10000] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu [Op:Fill] name: ",
                ),
            ),
            unless=r"device:GPU|GPU_\d_bfc",
        ),
        rule(
            0.42,
            says(
                "OOM when allocating",
                (
                    "tensorflow 2.21.0",
                    "ResourceExhaustedError: {{function_node __wrapped__Fill_device_/job:localhost/replica:0/task:0/device:CPU:0}} OOM when allocating tensor with shape[1000000000000,10000] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu [Op:Fill] name: ",
                ),
            ),
            says(
                "failed to allocate", ("tensorflow 2.10", "ResourceExhaustedError: failed to allocate memory [Op:Mul]")
            ),
            types="ResourceExhaustedError",
        ),
        rule(
            0.9,
            says(
                "node running low on memory",
                (
                    "ray 2",
                    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 172.17.0.2, ID: 90efe99b630d4b1f6ac1504df64764732d555b526049638f9d86552f) was 121.83GB / 128.00GB (0.951807), which exceeds the memory usage threshold of 0.95.",
                ),
            ),
            types="OutOfMemoryError OwnerDiedError WorkerCrashedError RayTaskError",
        ),
        rule(0.92, *PAGING_FILE),
        rule(
            0.6,
            says(
                r"\bout of (?:host |system |CPU )?memory\b",
                (
                    "jax 0.10.2",
                    "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 4000000000000000000 bytes.",
                ),
            ),
            says(
                r"(?:failed|unable) to allocate (?:memory|\d)",
                (
                    "numpy 2.4.6",
                    "MemoryError: Unable to allocate 728. TiB for an array with shape (100000000000000,) and data type float64",
                ),
            ),
            unless="GPU|CUDA|cuda|device|shared",
        ),
    ),
    lines=(
        rule(
            0.95,
            says(
                "oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)",
                (
                    "Linux 6.18 mm/oom_kill.c",
                    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=python3,pid=4242,uid=1000",
                ),
            ),
        ),
        rule(
            0.94,
            says(
                r"Out of memory: Kill(?:ed)? process \d+ \(",
                (
                    "Linux 3.13 kernel log",
                    "[1880957.563400] Out of memory: Kill process 18694 (perl) score 246 or sacrifice child",
                ),
            ),
        ),
        rule(
            0.86,
            says(
                r"\bKilled process \d+ \([^)\n]{1,40}\),? (?:UID:? ?\d+,? )?(?:total-vm|anon-rss)",
                (
                    "Linux 3.13 kernel log",
                    "[1880957.563408] Killed process 18694 (perl) total-vm:1972392kB, anon-rss:1953348kB, file-rss:0kB",
                ),
            ),
        ),
        rule(
            0.9,
            says(
                "session crashed after using all available RAM",
                ("Google Colab", "Your session crashed after using all available RAM."),
            ),
            says(
                "tried to allocate more memory than is available",
                ("Kaggle", "Your notebook tried to allocate more memory than is available. It has restarted."),
            ),
        ),
        rule(
            0.9,
            says(
                "low on resource: memory",
                (
                    "Kubernetes 1.2x",
                    "The node was low on resource: memory. Container minecraft was using 1924152Ki, which exceeds its request of 0.",
                ),
            ),
            says(
                "killed due to memory pressure",
                ("ray ray-0.7.0", "Workers (tasks / actors) killed due to memory pressure (OOM),"),
            ),
            says(
                "node running low on memory",
                (
                    "ray 2",
                    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 172.17.0.2, ID: 90efe99b630d4b1f6ac1504df64764732d555b526049638f9d86552f) was 121.83GB / 128.00GB (0.951807), which exceeds the memory usage threshold of 0.95.",
                ),
            ),
        ),
        rule(
            0.88,
            says(
                "(?:earlyoom|systemd-oomd).{0,80}(?:kill|SIGTERM)",
                (
                    "systemd 249",
                    "Feb 15 17:10:20 d960-ubu2 systemd-oomd[949]: Killed /user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-82bbbfd7.scope due to memory pressure for /user.slice/user-1000.slice/user@1000.service being 51.23% > 50.00% for > 20s with reclaim activity",
                ),
            ),
            says(
                r"sending SIG\w+ to process \d+ .{0,80}badness",
                ("earlyoom 1.6.2", 'sending SIGTERM to process 598179 uid 1000 "python": badness 882, VmRSS 7577 MiB'),
            ),
        ),
        rule(
            0.72,
            says(
                "invoked oom-killer",
                (
                    "Linux 5.14 kernel log",
                    "stress-ng-vm invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=1000",
                ),
            ),
        ),
        rule(
            0.85,
            says(
                "std::bad_alloc",
                ("C++ runtime (libstdc++)", "terminate called after throwing an instance of 'std::bad_alloc'"),
            ),
            says(
                "Cannot allocate memory(?! in static)",
                (
                    "torch 2.13.0",
                    "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000000000000 bytes. Error code 12 (Cannot allocate memory)",
                ),
            ),
        ),
        rule(
            0.9,
            says("Java heap space", ("Java 8", "java.lang.OutOfMemoryError: Java heap space")),
            says("GC overhead limit exceeded", ("Java 8", "java.lang.OutOfMemoryError: GC overhead limit exceeded")),
        ),
        rule(
            0.85,
            says(
                "mmap(?:ing)? (?:failed|error).{0,40}(?:memory|ENOMEM)",
                ("llama.cpp b4000", "llama_model_load: error loading model: mmap failed: Cannot allocate memory"),
            ),
            says(
                r"out of memory allocating \d+ bytes",
                ("jaxlib 0.10.2", "Out of memory allocating 4000000000000000000 bytes."),
            ),
        ),
        rule(
            0.8,
            says(
                r"Unable to allocate [\d.]+ [KMGT]iB for an array",
                (
                    "numpy 2.4.6",
                    "MemoryError: Unable to allocate 728. TiB for an array with shape (100000000000000,) and data type float64",
                ),
            ),
        ),
        rule(
            0.4,
            says(
                r"Allocation of \d+ exceeds \d+% of (?:free )?system memory",
                (
                    "tensorflow 2.12",
                    "2023-06-05 02:52:51.331855: W tensorflow/core/framework/cpu_allocator_impl.cc:82] Allocation of 19267584 exceeds 10% of free system memory.",
                ),
            ),
        ),
        rule(
            0.45,
            *KILLED,
            *SIGKILL_REPORTED,
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
