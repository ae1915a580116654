"""Each of the driver's numbered messages that names a cause says what helps."""

from __future__ import annotations

import pytest

from holdfast.causes import CAUSES
from holdfast.causes.shared.xid_actions import ACTIONS
from holdfast.diagnosis.reading.kernel_log import XIDS, read_xid


def test_there_is_an_action_for_each_number_that_names_a_cause_and_for_no_other() -> None:
    assert ACTIONS.keys() == XIDS.keys()


@pytest.mark.parametrize(
    ("line", "cause", "helps"),
    [
        ("NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus.", "gpu-lost", "reboot the machine"),
        ("NVRM: Xid (PCI:0000:52:00): 63, Row Remapper: New row marked for remapping", "gpu-hardware-fault", "when it is free"),
        ("NVRM: Xid (PCI:0000:52:00): 94, pid=7, Contained: SM (0x1).", "gpu-hardware-fault", "start the job again"),
        ("NVRM: Xid (PCI:0000:52:00): 13, pid=7, Graphics Exception", "gpu-illegal-access", "compute-sanitizer"),
        ("NVRM: Xid (PCI:0000:52:00): 46, pid=7, GPU stopped processing", "gpu-hardware-fault", "reset the card"),
    ],
)  # fmt: skip
def test_a_line_of_the_kernels_is_told_with_what_helps(line: str, cause: str, helps: str) -> None:
    found = read_xid(line)

    assert found is not None
    assert found.cause == cause
    assert cause in CAUSES
    assert helps in found.evidence[0].text


def test_one_that_only_follows_another_names_nothing() -> None:
    assert read_xid("NVRM: Xid (PCI:0000:52:00): 45, pid=7, Ch 00000008") is None
