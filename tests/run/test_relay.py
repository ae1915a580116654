"""The process the user started, by itself."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast.supervisor.relay import Relay
from holdfast.supervisor.relay_link import PIECE_BYTES, link_pair
from holdfast.supervisor.run_spec import RunSpec
from holdfast.supervisor.streams import Source, Streams
from holdfast.vocabulary import Output


def test_what_the_watcher_could_not_take_is_told_once_it_can(tmp_path: Path) -> None:
    """A flood of output has filled the link, and nothing more is printed: its reader has gone."""
    spec = RunSpec(command=("yes",), directory=tmp_path, cwd=tmp_path, policy="observe")
    here, watcher = link_pair()
    printed, script = os.pipe()
    passed_on, sink = os.pipe()
    relay = Relay(spec, Streams((0, 1, 2), [Source("stdout", printed, sink)]), here, os.getpid())
    while here.send_output(Output("stdout", time.time(), b"y" * PIECE_BYTES, 0)):
        pass
    while here.send_output(Output("stdout", time.time(), b"y", 0)):
        pass
    relay._tell("reader-gone", stream="stdout")
    relay._wake()
    relay._turn()
    packets = watcher.receive()
    assert packets is not None and all(isinstance(packet, Output) for packet in packets) and packets
    relay._turn()
    assert watcher.receive() == [{"kind": "reader-gone", "stream": "stdout"}]
    here.close()
    watcher.close()
    for fd in (printed, script, passed_on, sink):
        os.close(fd)
