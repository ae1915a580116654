"""Bytes received and sent by this machine, without loopback and virtual interfaces, which would count them twice."""

from __future__ import annotations

import psutil

from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import missing, why
from holdfast.vocabulary import Sample

COUNTED_ELSEWHERE = ("lo", "veth", "docker", "br-", "virbr", "cni", "cali", "flannel", "ifb", "tun", "tap")


class Network:
    name = "network"
    every_s = 2.0
    signals = ("net.received_bytes", "net.sent_bytes", "net.errors_count")

    def __init__(self, scope: Scope) -> None:
        try:
            interfaces = psutil.net_io_counters(pernic=True)
        except OSError as error:
            raise Missing(why(error)) from None
        if not any(_counts(name) for name in interfaces):
            raise Missing("no network interface but loopback")

    def read(self, now: float) -> list[Reading]:
        try:
            interfaces = psutil.net_io_counters(pernic=True)
        except OSError as error:
            return list(missing(self.signals, now, why(error)))
        real = [counters for name, counters in interfaces.items() if _counts(name)]
        return [
            Sample("net.received_bytes", sum(one.bytes_recv for one in real), now),
            Sample("net.sent_bytes", sum(one.bytes_sent for one in real), now),
            Sample("net.errors_count", sum(one.errin + one.errout + one.dropin + one.dropout for one in real), now),
        ]


def _counts(interface: str) -> bool:
    return not interface.startswith(COUNTED_ELSEWHERE)
