"""Words that the rules of several causes share."""

from __future__ import annotations

from holdfast.causes.form import says

SHM = r"shm\b|/dev/shm|/torch_\d|shared.memory"
# No pickle has these bytes for an opcode: ends of lines, gzip, a blank, "<" of a page, "v" of Git LFS's pointer, "{".
NO_PICKLE = r"Unsupported operand (?:10|13|31|32|60|118|123)\b"
HOST_WORDS = (
    says(
        r"\[Errno 12\]",
        ("CPython 3.11.7 with glibc 2.42, translated", "OSError: [Errno 12] Nicht genügend Hauptspeicher verfügbar"),
    ),
    says("Cannot allocate memory", ("bash 5 with glibc 2.42", "bash: fork: Cannot allocate memory")),
    says(
        "DefaultCPUAllocator: (?:can't|not enough)",
        ("torch 2.13.0", "DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
    ),
    says(
        "std::bad_alloc", ("C++ runtime (libstdc++)", "terminate called after throwing an instance of 'std::bad_alloc'")
    ),
    says(
        r"Unable to allocate (?P<wanted>[\d.]+ [KMGT]iB) for an array",
        (
            "numpy 2.4.6",
            "MemoryError: Unable to allocate 728. TiB for an array with shape (100000000000000,) and data type float64",
        ),
    ),
    says(
        "not enough memory: you tried to allocate",
        ("torch7 2025-03-31", "$ Torch: not enough memory: you tried to allocate 3GB. Buy new RAM!"),
    ),
)
# That the loss is no number says nothing of why.
NAN_SYMPTOM = (
    says(
        r"loss (?:became|is|=|:) ?(?:infinite or )?(?:nan|inf\b)",
        ("a log shown in public", "FloatingPointError: Loss became infinite or NaN at iteration=27!"),
    ),
    says(
        "nan loss",
        (
            "tensorflow 1.15",
            "tensorflow.python.training.basic_session_run_hooks.NanLossDuringTrainingError: NaN loss during training.",
        ),
    ),
    says(
        "nan in (?:summary|loss)",
        (
            "tensorflow 1.4",
            "InvalidArgumentError (see above for traceback): Nan in summary histogram for: conv2/activations",
        ),
    ),
)
REMEDY = "probably|avoid|prevent|against|clipping|help with"
CHECKED = r"(?:Detected Infinity or NaN|invalid value \((?:nan|inf)\) encountered|had (?:NaN|Inf)|returned nan values)"
# What the shell says of a child that got SIGKILL, also in other tongues, also right behind a progress bar.
KILLED = (
    says(
        r"^(?:.{0,200}: line \d+: *\d+ )?(?:Killed\b(?! process| \d| by)|已杀死|已砍掉|Getötet$|Processus arrêté|Terminado \(killed\)|Убито|強制終了|죽었음)",
        ("bash 5 with glibc 2.42, translated", "train.sh: line 3: 12345 已杀死               python train.py"),
    ),
    says(
        r"\d(?:\]|s/it\]?|it/s\]?)?Killed$",
        ("tqdm, then bash", "  33%|███▎      | 5/15 [02:32<05:36, 33.69s/it]Killed"),
    ),
    says(
        r"^(?:zsh: |\[\d+\] {1,4}[-+]? {0,4}\d+ )killed\b",
        ("zsh on macOS", "zsh: killed     python end_to_end_pipeline_test.py"),
    ),
    says(
        r"terminated by signal (?:9\b|SIGKILL)",
        ("fish 3.7", "fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)"),
        ("GNU time 1.9", "Command terminated by signal 9"),
    ),
)
# What launchers, runners and parents report of a child that got SIGKILL.
SIGKILL_REPORTED = (
    says(
        r"(?<!terminated by )signal 9\b",
        ("Open MPI 5", "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed)."),
    ),
    says(
        "(?<!terminated by signal )SIGKILL",
        (
            "CPython 3.11.7",
            "CalledProcessError: Command '['sh', '-c', 'kill -9 $$']' died with <Signals.SIGKILL: 9>.",
        ),
    ),
    says(
        "exit(?:ed with)? ?(?:code|status)?:? 137",
        ("GitHub Actions runner", "Error: Process completed with exit code 137."),
    ),
    says(r"exitcode\s{0,4}: -9\b", ("torch 1.13", "  exitcode  : -9 (pid: 25827)")),
    says(
        r"return ?code =? ?-9\b",
        (
            "DeepSpeed 0.16",
            "['/usr/bin/python3', '-u', 'train.py', '--local_rank=0'] exits with return code = -9",
        ),
    ),
)
LOST_TYPES = "ConnectionResetError ConnectionRefusedError ConnectionAbortedError ConnectionError NewConnectionError MaxRetryError URLError ReadTimeout ReadTimeoutError ConnectTimeout DistNetworkError RendezvousConnectionError gaierror ChunkedEncodingError IncompleteRead ProtocolError HfHubHTTPError TimeoutError"
LOCAL_PIPE = r"multiprocessing[\\/](?:connection|resource_sharer|reduction|managers|queues)\.py"
RAISED = "ValueError TypeError RuntimeError AssertionError InvalidArgumentError IndexError XlaRuntimeError JaxRuntimeError UnimplementedError"
