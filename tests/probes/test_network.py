from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

from holdfast.probes import Missing, Scope
from holdfast.probes.network import Network

from .machine import reasons, samples


def card(received: int, sent: int, errors: int = 0) -> SimpleNamespace:
    return SimpleNamespace(bytes_recv=received, bytes_sent=sent, errin=errors, errout=0, dropin=0, dropout=0)


def test_loopback_and_virtual_ends_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = {
        "lo": card(900, 900),
        "eth0": card(5, 7, 1),
        "ib0": card(10, 20),
        "veth12ab": card(5, 7),
        "docker0": card(1, 1),
    }
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: cards)
    assert samples(Network(Scope(1, 1, ())).read(1.0)) == {
        "net.received_bytes": 15,
        "net.sent_bytes": 27,
        "net.errors_count": 1,
    }


def test_loopback_alone_is_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: {"lo": card(1, 1)})
    with pytest.raises(Missing, match="loopback"):
        Network(Scope(1, 1, ()))


def test_a_network_that_cannot_be_read_any_more_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: {"eth0": card(1, 1)})
    probe = Network(Scope(1, 1, ()))

    def gone(pernic: bool) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/proc/net/dev")

    monkeypatch.setattr(psutil, "net_io_counters", gone)
    assert reasons(probe.read(1.0))["net.sent_bytes"] == "/proc/net/dev: No such file or directory"
