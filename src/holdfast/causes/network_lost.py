from __future__ import annotations

from holdfast.causes.form import CauseRecord, near, rule, says, shell
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
    says("Connection (?:reset|closed|refused)", ("CPython 3.11.7", "ConnectionError: Connection closed by peer")),
    says("No route to host", ("glibc", "No route to host")),
    says("Network is unreachable", ("CPython 3.11.7", "Network is unreachable.")),
    says(
        r"\[Errno (?:104|111|113|101|110)\]",
        ("CPython 3.11.7 with glibc 2.42, translated", "OSError: [Errno 111] Verbindungsaufbau abgelehnt"),
    ),
    says(
        "[Nn]ame or service not known",
        ("CPython 3.11.7 with glibc", "socket.gaierror: [Errno -2] Name or service not known"),
    ),
    says("name resolution", ("glibc", "Temporary failure in name resolution")),
    says("Name does not resolve", ("CPython 3.11 with musl 1.2", "socket.gaierror: [Errno -2] Name does not resolve")),
    says(
        r"socket(?:Start|Poll)?Connect\w*[^\n]{0,80}fail",
        (
            "nccl nccl4py-v0.3.1",
            "node1:4242:4242 [0] NCCL WARN ncclOsSocketPollConnect to 10.0.0.2<43871> failed with error Connection timed out",
        ),
    ),
    says("connectFullMesh failed", ("torch 2.13.0", "Gloo connectFullMesh failed with")),
    says(
        "unable to complete a TCP connection",
        (
            "Open MPI 4.1",
            "A process or daemon was unable to complete a TCP connection\nto another process:\n  Local host:    3eed81735a60\n  Remote host:   0cdbe1810ec3\nThis is usually caused by a firewall on the remote host. Please\ncheck that any firewall (e.g., iptables) has been disabled and\ntry again.",
        ),
    ),
    says(
        "connection to the C10d store has failed",
        (
            "torch 2.13.0",
            "RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
        ),
    ),
    says(
        "client socket has (?:failed|timed out)",
        (
            "torch 2.13.0",
            "DistNetworkError: The client socket has timed out after 1000ms while trying to connect to (localhost, 29512).",
        ),
    ),
    says(
        "Failed to connect to",
        ("ray ray-0.7.0", "ConnectionError: Failed to connect to Ray at address: 10.0.0.2:6379."),
    ),
    says(
        "Max retries exceeded",
        (
            "requests 2.34.2 behind a proxy",
            "requests.exceptions.ProxyError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /gpt2/resolve/main/config.json (Caused by ProxyError('Unable to connect to proxy', OSError('Tunnel connection failed: 403 Forbidden')))",
        ),
    ),
    says(
        "Failed to establish a new connection",
        (
            "urllib3 1.26 on Windows",
            "urllib3.exceptions.NewConnectionError: <urllib3.connection.HTTPSConnection object at 0x000001F6A1C8F4C0>: Failed to establish a new connection: [WinError 10061] No connection could be made because the target machine actively refused it",
        ),
    ),
    says("urlopen error", ("CPython 3.11.7", "urllib.error.URLError: <urlopen error timed out>")),
    says(
        "Read timed out",
        (
            "requests 2.34.2",
            "ReadTimeout: HTTPSConnectionPool(host='127.0.0.1', port=46131): Read timed out. (read timeout=0.3)",
        ),
    ),
    says("ConnectTimeout", ("httpx 0.28", "httpx.ConnectTimeout: timed out")),
    says(
        "We couldn't connect to",
        (
            "transformers 5.22.2",
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\nCheck your internet connection or see how to run the library in offline mode at 'https://huggingface.co/docs/transformers/installation#offline-mode'.",
        ),
    ),
    says(
        "Internet connection is on",
        (
            "transformers 5.22.2",
            "LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache. Please check your connection and try again or make sure your Internet connection is on.",
        ),
    ),
    says(
        "Couldn't reach",
        (
            "datasets 5.0.1",
            "ConnectionError: Couldn't reach the Hugging Face Hub for dataset 'imdb': Offline mode is enabled.",
        ),
    ),
    says("Net(?:work)? .{0,20}(?:down|lost)", ("CPython 3.11.7 with glibc", "OSError: [Errno 100] Network is down")),
    says(
        "[Bb]roken pipe",
        ("torch 1.13, of its TCPStore", "RuntimeError: Broken pipe"),
        near("CPython 3.11.7, whose output goes to head", "BrokenPipeError: [Errno 32] Broken pipe"),
    ),
    says("SSLError", ("CPython 3.11.7", "SSLError: ALPN protocols must be 1 to 255 in length")),
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
        rule(
            0.72,
            says(
                "^",
                (
                    "requests 2.34.2",
                    "requests.exceptions.ConnectionError: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
                ),
            ),
            types=LOST_TYPES,
            outside=LOCAL_PIPE,
        ),
        rule(0.7, *LOST, unless="peer|remote process", outside=LOCAL_PIPE),
        rule(
            0.55,
            says("by (?:remote )?peer", ("jaxlib 0.10.2", "Connection closed by peer")),
            says(
                "remote process exit",
                (
                    "torch 2.4, NCCL 2.20.5",
                    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version 2.20.5",
                ),
            ),
            says(
                "NCCL communicator was aborted",
                ("torch 2.15.0", "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1."),
            ),
            outside=LOCAL_PIPE,
        ),
        rule(
            0.42,
            says(
                "unhandled system error",
                ("torch 1.12", "RuntimeError: NCCL error: unhandled system error, NCCL version 2.10.3"),
            ),
        ),
        rule(
            0.62,
            says(
                r"(?:connection|connect|socket|network)\b.{0,60}\b(?:refused|reset|timed out|lost|unreachable|aborted)",
                (
                    "torch 2.13.0",
                    "DistNetworkError: The client socket has timed out after 1000ms while trying to connect to (localhost, 29512).",
                ),
            ),
            unless="peer",
        ),
    ),
    lines=(
        rule(
            0.86,
            says(
                "NCCL WARN .{0,160}(?:Connection refused|No route to host|Connection timed out|status=12|Network is unreachable)",
                (
                    "NCCL 2.21",
                    "kp-ddp-worker-0:3468:3905 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.216.210.236<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fd00:1148:9000:5000:4:200:3:ff22 remoteGidsfd00:1148:9000:5000:4:200:3:ff1f",
                ),
            ),
        ),
        rule(
            0.5,
            says(
                "NCCL WARN .{0,160}(?:Connection (?:closed|reset)|remote)",
                (
                    "nccl nccl4py-v0.3.1",
                    "node1:4242:4242 [0] NCCL WARN NET/IB : Remote RoCE device is incompatible with the local [0]mlx5_0:1/IB. Try selecting NICs of only one link type using NCCL_IB_HCA",
                ),
            ),
            says("Connection (?:reset|closed) by (?:remote )?peer", ("jaxlib 0.10.2", "Connection closed by peer")),
        ),
        rule(
            0.82,
            says(
                r"\bWARN .{0,100}(?:Socket creation failed|no (?:usable |socket )*interface(?:s)? found|no usable interface|Call to (?:connect|bind|socket) .{0,40}failed)",
                ("nccl nccl4py-v0.3.1", "node1:4242:4242 [0] NCCL WARN Bootstrap : no socket interface found"),
            ),
        ),
        rule(
            0.82,
            says(
                r"\bWARN .{0,40}NET/IB ?: (?:Got (?:completion .{0,80}with|async event ?: port) error|Unable to open device|Call to ibv_\w+ failed)",
                ("nccl nccl4py-v0.3.1", "node1:4242:4242 [0] NCCL WARN NET/IB : Unable to open device mlx5_0"),
            ),
        ),
        rule(
            0.82,
            says(
                r"(?:\bWARN\b|^\S{0,40}\bnccl\w*:).{0,60}(?:" + UNREACHED + ")",
                (
                    "nccl nccl4py-v0.3.1",
                    "node1:4242:4242 [0] NCCL WARN Net : error encountered when getting address info : Name or service not known",
                ),
            ),
        ),
        rule(
            0.82,
            says(
                "Transport retry count exceeded on",
                (
                    "UCX 1.15",
                    "[node1:4242 :0:4242] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)",
                ),
            ),
        ),
        rule(
            0.7,
            says(
                "failed to send a keep-alive heartbeat",
                (
                    "torch 2.13.0",
                    "The node 'node2_4242_0' has failed to send a keep-alive heartbeat to the rendezvous 'job-7' due to an error of type RendezvousStateError.",
                ),
            ),
            says(
                "RendezvousConnectionError",
                (
                    "torch 2.13.0",
                    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner exception for details.",
                ),
            ),
        ),
        rule(
            0.72,
            says("connectFullMesh failed", ("torch 2.13.0", "Gloo connectFullMesh failed with")),
            "unable to complete a TCP connection",
        ),
        rule(
            0.62,
            says("Connection refused", ("CPython 3.11.7", "URLError: <urlopen error [Errno 111] Connection refused>")),
            says("Connection timed out", ("jaxlib 0.10.2", "Connection timed out after 10001 milliseconds")),
            says(
                "client socket has timed out",
                (
                    "torch 2.13.0",
                    "DistNetworkError: The client socket has timed out after 1000ms while trying to connect to (localhost, 29512).",
                ),
            ),
        ),
        rule(
            0.58,
            says(
                r"HTTPS?ConnectionPool\(.{0,80}Max retries exceeded with url",
                (
                    "requests 2.34.2",
                    "ConnectionError: HTTPConnectionPool(host='localhost', port=1): Max retries exceeded with url: /x (Caused by NewConnectionError(\"HTTPConnection(host='localhost', port=1): Failed to establish a new connection: [Errno 111] Connection refused\"))",
                ),
            ),
        ),
        rule(
            0.6,
            says("Temporary failure in name resolution", ("glibc", "Temporary failure in name resolution")),
            says("No route to host", ("glibc", "No route to host")),
            says("Network is unreachable", ("CPython 3.11.7", "Network is unreachable.")),
        ),
    ),
)
