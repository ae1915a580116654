"""What relay and watcher say to each other, over one packet socket that neither ever waits on."""

from __future__ import annotations

import json
import socket
import struct
from collections import deque
from typing import Any

from holdfast.vocabulary import Output

STREAMS = ("stdout", "stderr", "terminal")
PIECE_BYTES = 64 << 10  # of output in one packet: well below the socket buffer of 208 KiB
_OUTPUT = struct.Struct("<cBdQ")


class Link:
    """One end. What is told is never dropped: it waits here while the other side is busy. Output may be refused."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._untold: deque[bytes] = deque()

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        self._end.close()

    @property
    def has_untold(self) -> bool:
        return bool(self._untold)

    def tell(self, kind: str, **data: Any) -> bool:
        """False only when nobody is there any more."""
        self._untold.append(b"J" + json.dumps({"kind": kind, **data}).encode())
        return self.flush()

    def flush(self) -> bool:
        """Sends what waits; call it again once the socket takes more."""
        while self._untold:
            try:
                self._end.send(self._untold[0])
            except BlockingIOError:
                return True
            except OSError:
                return False
            self._untold.popleft()
        return True

    def send_output(self, piece: Output) -> bool:
        """False when it was not taken: keep it, and try again later."""
        if not self.flush() or self._untold:
            return False
        head = _OUTPUT.pack(b"O", STREAMS.index(piece.stream), piece.at, piece.skipped_bytes)
        try:
            return self._end.send(head + piece.data) > 0
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
