"""Many ranks: who waits, who disagrees, what got lost between them."""

from __future__ import annotations

from holdfast.diagnosis.reading.rule import Rule, any_of, flatten, rule, rules

TIMEOUT = any_of(
    r"Watchdog caught collective operation timeout|collective operation timeout|ran for \d+ milliseconds before timing out",
    r"Timed out waiting \d+ms for (?:recv|send)|failed to pass monitoredBarrier|[Bb]arrier timed out|Ranks? [\d, ]+ failed to",
    r"Timeout waiting for key|Timed out receiving the shared seed|stopped sending heartbeats|Timed out after \d+ seconds waiting for clients|Timed out initializing process group|wait timeout after \d+ ?ms",
    r"submitted to be reduced, gathered or broadcasted by subset of ranks|Stalled (?:ranks|tensor)|[Ss]ocket Timeout|store->get\('?\S{0,40}'?\) got error(?!: Connection)",
    r"Connected \d+/\d+ ranks|NCCL.{0,60}timed ?out|NCCL \w{0,20} ?timeout (?:error|after|occurred|detected)|heartbeat (?:monitor )?(?:timed out|timeout)|DEADLINE_EXCEEDED",
    r"watchdog got stuck for \d+ seconds",
    # Of JAX's and TensorFlow's coordination service, and of XLA's own meeting points.
    r"ERROR in coordination service|[Cc]oordination service agent (?:is )?in error|error from (?:the )?coordination service|calling /tensorflow\.CoordinationService|cluster registration failed|JAX distributed service detected|Wait_for_all_tasks_to_register",
    r"backend initialization is taking more than [\d.]+ seconds\. Did you run your code on all",
    r"waiting for `.{0,200}` for \d+ seconds and may be stuck|not all of them arrived on time|[Tt]ermination timeout for .{0,200}exceeded|RendezvousTimeout|HorovodTimeout",
)
DISAGREE = any_of(
    r"Mismatched (?:\w+ )?(?:data types|tensor shapes|collective|allreduce|allgather|broadcast|operations|\w+ tensor)",
    r"Detected mismatch between collectives|expects same model across all ranks|mismatched across ranks|appears not to match (?:sizes|strides)",
    r"Expected to (?:have finished reduction in the prior iteration|mark a variable ready only once)|Message truncated|op\.preamble\.length|inconsistent \d+ params",
    r"(?:differs?|different|inconsistent|not the same)\b.{0,60}(?:across|on all|between) (?:the )?(?:ranks|processes|workers)|"
    r"(?:must|should|expects?|expected)\b.{0,60}\bsame\b.{0,60}(?:across|on all|between) (?:the )?(?:ranks|processes|workers)|Duplicate GPU detected",
    r"(?:not|must be|should be|expected to be|should have|must have) (?:identical|the same|equal|consistent)\b.{0,60}across (?:all )?(?:ranks|processes|hosts|workers)|sync_global_devices name mismatch",
    r"Bootstrap Root : (?:mismatch|rank \d+ of)|does not match the world size|mixed local \w+ device counts across ranks",
)
# NCCL: no way to the other ranks. The texts of its WARN() around sockets, interfaces and InfiniBand.
UNREACHED = any_of(
    r"[Cc]onnect to \S{1,80} (?:.{0,60})?(?:failed|returned)|connecting to address .{0,80}neither AF_INET|[Ss]ocket (?:progress|recv|poll|creation) (?:error|failed)",
    r"[Nn]o (?:(?:usable|valid|socket|IP|listening) ?)*interfaces? found|error encountered when getting address info|Failed to initialize any NET plugin|No transport found for rank",
    r"NET/IB ?:.{0,60}(?:async fatal event|Unable to (?:open|query)|incompatible devices|device is incompatible|Got CQE with error|Device \d+ marked as failed)",
    r"Call to (?:connect|bind|socket|listen|ibv_\w+) .{0,60}failed|(?:message truncated|wrong (?:type|magic)) .{0,20}(?:!=|instead of)",
)
VERSIONS = (
    r"Mismatched NCCL version detected|NCCL version mismatch with|compiled with NCCL version .{0,80}but is running"
)
LOST = any_of(
    r"Connection (?:reset|closed|refused)|No route to host|Network is unreachable|\[Errno (?:104|111|113|101|110)\]",
    r"[Nn]ame or service not known|name resolution|Name does not resolve|socket(?:Start|Poll)?Connect\w*[^\n]{0,80}fail|Call to connect returned",
    r"connectFullMesh failed|unable to complete a TCP connection|connection to the C10d store has failed|failed to connect to all addresses|client socket has (?:failed|timed out)|Failed to connect to",
    r"Max retries exceeded|Failed to establish a new connection|urlopen error|Read timed out|ConnectTimeout|We couldn't connect to|Internet connection is on|Couldn't reach",
    r"connect\(\) timed out|status=12\b|IBV_WC_RETRY_EXC|transport retry|Net(?:work)? .{0,20}(?:down|lost)|Couldn't connect to server|[Bb]roken pipe|SSLError|Unreachable",
)
LOST_TYPES = (
    "ConnectionResetError ConnectionRefusedError ConnectionAbortedError ConnectionError NewConnectionError MaxRetryError URLError "
    "ReadTimeout ReadTimeoutError ConnectTimeout DistNetworkError RendezvousConnectionError gaierror ChunkedEncodingError IncompleteRead "
    "ProtocolError HfHubHTTPError TimeoutError"
)

LOCAL_PIPE = r"multiprocessing[\\/](?:connection|resource_sharer|reduction|managers|queues)\.py"

EXCEPTIONS: tuple[Rule, ...] = flatten(
    (
        rules("collective-timeout", (0.86, TIMEOUT)),
        rules("rank-mismatch", (0.92, DISAGREE)),
        (
            rule("network-lost", 0.86, LOST, LOST_TYPES, outside=LOCAL_PIPE),
            rule("network-lost", 0.72, r"^", LOST_TYPES, outside=LOCAL_PIPE),
            # The other end of a pipe on this machine: that process is gone.
            rule("worker-died", 0.85, r"^", LOST_TYPES + " EOFError BrokenPipeError", frames=LOCAL_PIPE),
            rule("network-lost", 0.7, LOST, unless=r"peer|remote process", outside=LOCAL_PIPE),
            rule(
                "network-lost",
                0.55,
                r"by (?:remote )?peer|ncclRemoteError|remote process exit|NCCL communicator was aborted",
                outside=LOCAL_PIPE,
            ),
            rule("network-lost", 0.42, r"ncclSystemError|unhandled system error"),
            rule("rank-mismatch", 0.42, r"ncclInvalidUsage|invalid usage"),
        ),
    )
)
LINES: tuple[Rule, ...] = flatten(
    (
        # The watchdog ends with whatever went wrong on its rank, and what that was may stand behind it.
        rules("collective-timeout", (0.85, TIMEOUT), (0.52, r"watchdog thread terminated with exception")),
        rules("rank-mismatch", (0.9, DISAGREE)),
        rules(
            "network-lost",
            (
                0.86,
                r"NCCL WARN .{0,160}(?:Connection refused|No route to host|Connection timed out|status=12|Network is unreachable)",
            ),
            (
                0.5,
                r"NCCL WARN .{0,160}(?:Connection (?:closed|reset)|remote)|Connection (?:reset|closed) by (?:remote )?peer",
            ),
            (
                0.82,
                r"\bWARN .{0,100}(?:Socket creation failed|no (?:usable |socket )*interface(?:s)? found|no usable interface|Call to (?:connect|bind|socket) .{0,40}failed)",
            ),
            (
                0.82,
                r"\bWARN .{0,40}NET/IB ?: (?:Got (?:completion .{0,80}with|async event ?: port) error|Unable to open device|Call to ibv_\w+ failed)",
            ),
            (0.82, r"(?:\bWARN\b|^\S{0,40}\bnccl\w*:).{0,60}(?:" + UNREACHED + ")"),
            (0.7, r"failed to send a keep-alive heartbeat|RendezvousConnectionError"),
            (0.72, r"connectFullMesh failed|unable to complete a TCP connection|caused by a firewall"),
            (0.62, r"Connection refused|Connection timed out|client socket has timed out"),
            (0.58, r"HTTPS?ConnectionPool\(.{0,80}Max retries exceeded with url"),
            (0.6, r"Temporary failure in name resolution|No route to host|Network is unreachable"),
        ),
        rules("dependency-conflict", (0.9, VERSIONS)),
        rules(
            "straggler",
            (0.56, r"\bslowest ranks by \w*time\b"),
            (0.6, r"[Ss]traggler.{0,80}(?:detected|rank)|rank \d+ is (?:slower|a straggler)"),
        ),
    )
)

# What the other ranks see when one is gone: true, and an echo.
ECHO = frozenset({"collective-timeout", "network-lost", "worker-died", "killed", "terminated", "native-crash"})
