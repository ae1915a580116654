"""Words that the rules of several causes share."""

from __future__ import annotations

SHM = r"shm\b|/dev/shm|/torch_\d|shared.memory"
HOST_WORDS = (
    r"\[Errno 12\]",
    "Cannot allocate memory",
    "DefaultCPUAllocator: (?:can't|not enough)",
    r"can't allocate memory: you tried to allocate \d+ bytes",
    "std::bad_alloc",
    r"Unable to allocate (?P<wanted>[\d.]+ [KMGT]iB) for an array",
    "not enough memory: you tried to allocate",
    "CPU out of memory",
)
# That the loss is no number says nothing of why.
NAN_SYMPTOM = (
    r"loss (?:became|is|=|:) ?(?:infinite or )?(?:nan|inf\b)",
    "nan loss",
    "nan in (?:summary|loss)",
    "loss is (?:nan|not finite)",
    "diverged with loss",
)
REMEDY = "probably|avoid|prevent|against|clipping|help with"
CHECKED = r"(?:Detected Infinity or NaN|invalid value \((?:nan|inf)\) encountered|had (?:NaN|Inf)|returned nan values)"
# What the shell says of a child that got SIGKILL, also in other tongues, also right behind a progress bar.
KILLED = (
    r"^(?:.{0,200}: line \d+: *\d+ )?(?:Killed\b(?! process| \d| by)|已杀死|已砍掉|Getötet$|Processus arrêté|Terminado \(killed\)|Убито|強制終了|죽었음)",
    r"\d(?:\]|s/it\]?|it/s\]?)?Killed$",
    r"^(?:zsh: |\[\d+\] {1,4}[-+]? {0,4}\d+ )killed\b",
    r"terminated by signal (?:9\b|SIGKILL)",
)
LOST_TYPES = "ConnectionResetError ConnectionRefusedError ConnectionAbortedError ConnectionError NewConnectionError MaxRetryError URLError ReadTimeout ReadTimeoutError ConnectTimeout DistNetworkError RendezvousConnectionError gaierror ChunkedEncodingError IncompleteRead ProtocolError HfHubHTTPError TimeoutError"
LOCAL_PIPE = r"multiprocessing[\\/](?:connection|resource_sharer|reduction|managers|queues)\.py"
RAISED = "ValueError TypeError RuntimeError AssertionError InvalidArgumentError IndexError XlaRuntimeError JaxRuntimeError UnimplementedError"
