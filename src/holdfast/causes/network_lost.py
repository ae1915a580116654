from __future__ import annotations

from holdfast.causes.form import CauseRecord, rule, shell
from holdfast.causes.shared.recipes import AMONG_RANKS
from holdfast.causes.shared.words import LOCAL_PIPE, LOST_TYPES

DOWNLOAD = r"(?P<url>https?://[\w./%?=&~+-]+[\w/])"
# NCCL: no way to the other ranks. The texts of its WARN() around sockets, interfaces and InfiniBand.
UNREACHED = "|".join(
    (
        r"[Cc]onnect to \S{1,80} (?:.{0,60})?(?:failed|returned)|connecting to address .{0,80}neither AF_INET|[Ss]ocket (?:progress|recv|poll|creation) (?:error|failed)",
        "[Nn]o (?:(?:usable|valid|socket|IP|listening) ?)*interfaces? found|error encountered when getting address info|Failed to initialize any NET plugin|No transport found for rank",
        r"NET/IB ?:.{0,60}(?:async fatal event|Unable to (?:open|query)|incompatible devices|device is incompatible|Got CQE with error|Device \d+ marked as failed)",
        r"Call to (?:connect|bind|socket|listen|ibv_\w+) .{0,60}failed|(?:message truncated|wrong (?:type|magic)) .{0,20}(?:!=|instead of)",
    )
)
LOST = (
    "Connection (?:reset|closed|refused)",
    "No route to host",
    "Network is unreachable",
    r"\[Errno (?:104|111|113|101|110)\]",
    "[Nn]ame or service not known",
    "name resolution",
    "Name does not resolve",
    r"socket(?:Start|Poll)?Connect\w*[^\n]{0,80}fail",
    "Call to connect returned",
    "connectFullMesh failed",
    "unable to complete a TCP connection",
    "connection to the C10d store has failed",
    "failed to connect to all addresses",
    "client socket has (?:failed|timed out)",
    "Failed to connect to",
    "Max retries exceeded",
    "Failed to establish a new connection",
    "urlopen error",
    "Read timed out",
    "ConnectTimeout",
    "We couldn't connect to",
    "Internet connection is on",
    "Couldn't reach",
    r"connect\(\) timed out",
    r"status=12\b",
    "IBV_WC_RETRY_EXC",
    "transport retry",
    "Net(?:work)? .{0,20}(?:down|lost)",
    "Couldn't connect to server",
    "[Bb]roken pipe",
    "SSLError",
    "Unreachable",
)
CAUSE = CauseRecord(
    id="network-lost",
    family="ranks",
    title="The connection to another machine or server broke",
    meaning="A rank, a rendezvous or a download server could not be reached or closed the connection. Where another rank died first, that one's error is the reason.",
    sure="No rank failed for a reason of its own, and the address cannot be reached.",
    echo=True,
    of_the_installation=True,
    recipes=(
        shell("Fetch it where there is a network, and copy it here", "curl -fLO '$url'", said=DOWNLOAD),
        shell("Can it be reached?", "nc -vz HOST 29500", unsaid=DOWNLOAD),
        shell(
            "Use the right network interface",
            "NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0 torchrun train.py",
            said=AMONG_RANKS,
        ),
        shell("Work from what was downloaded before", "HF_HUB_OFFLINE=1 python train.py", said=r"(?i)hugging|hf_hub"),
    ),
    exceptions=(
        rule(0.86, *LOST, types=LOST_TYPES, outside=LOCAL_PIPE),
        rule(0.72, "^", types=LOST_TYPES, outside=LOCAL_PIPE),
        rule(0.7, *LOST, unless="peer|remote process", outside=LOCAL_PIPE),
        rule(
            0.55,
            "by (?:remote )?peer",
            "ncclRemoteError",
            "remote process exit",
            "NCCL communicator was aborted",
            outside=LOCAL_PIPE,
        ),
        rule(0.42, "ncclSystemError", "unhandled system error"),
        rule(
            0.62,
            r"(?:connection|connect|socket|network)\b.{0,60}\b(?:refused|reset|timed out|lost|unreachable|aborted)",
            unless="peer",
        ),
    ),
    lines=(
        rule(
            0.86,
            "NCCL WARN .{0,160}(?:Connection refused|No route to host|Connection timed out|status=12|Network is unreachable)",
        ),
        rule(
            0.5,
            "NCCL WARN .{0,160}(?:Connection (?:closed|reset)|remote)",
            "Connection (?:reset|closed) by (?:remote )?peer",
        ),
        rule(
            0.82,
            r"\bWARN .{0,100}(?:Socket creation failed|no (?:usable |socket )*interface(?:s)? found|no usable interface|Call to (?:connect|bind|socket) .{0,40}failed)",
        ),
        rule(
            0.82,
            r"\bWARN .{0,40}NET/IB ?: (?:Got (?:completion .{0,80}with|async event ?: port) error|Unable to open device|Call to ibv_\w+ failed)",
        ),
        rule(0.82, r"(?:\bWARN\b|^\S{0,40}\bnccl\w*:).{0,60}(?:" + UNREACHED + ")"),
        rule(0.7, "failed to send a keep-alive heartbeat", "RendezvousConnectionError"),
        rule(0.72, "connectFullMesh failed", "unable to complete a TCP connection", "caused by a firewall"),
        rule(0.62, "Connection refused", "Connection timed out", "client socket has timed out"),
        rule(0.58, r"HTTPS?ConnectionPool\(.{0,80}Max retries exceeded with url"),
        rule(0.6, "Temporary failure in name resolution", "No route to host", "Network is unreachable"),
    ),
)
