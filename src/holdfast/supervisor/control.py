"""What relay and watcher say to each other, over one packet socket that neither ever waits on."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from holdfast.vocabulary import Output

STREAMS = ("stdout", "stderr", "terminal")
PIECE_BYTES = 64 << 10
_OUTPUT = struct.Struct("<cBdQ")


class Link:
    """One end. `send` drops nothing silently: it says whether the packet went out."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        self._end.close()

    def tell(self, kind: str, **data: Any) -> bool:
        return self._send(b"J" + json.dumps({"kind": kind, **data}).encode())

    def send_output(self, piece: Output) -> bool:
        head = _OUTPUT.pack(b"O", STREAMS.index(piece.stream), piece.at, piece.skipped_bytes)
        return self._send(head + piece.data)

    def _send(self, packet: bytes) -> bool:
        try:
            return self._end.send(packet) == len(packet)
        except OSError:  # full, or the other side is gone: its end is noticed by `receive`
            return False

    def receive(self) -> list[dict[str, Any] | Output] | None:
        """Everything that has arrived; None once the other side is gone and nothing is left to read."""
        packets: list[dict[str, Any] | Output] = []
        while True:
            try:
                packet = self._end.recv(PIECE_BYTES + 4096)
            except BlockingIOError:
                return packets
            except OSError:
                packet = b""
            if not packet:
                return packets or None
            if packet[:1] == b"O":
                _, stream, at, skipped = _OUTPUT.unpack_from(packet)
                packets.append(Output(STREAMS[stream], at, packet[_OUTPUT.size :], skipped))
            else:
                packets.append(json.loads(packet[1:]))


def link_pair() -> tuple[Link, Link]:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Link(left), Link(right)
