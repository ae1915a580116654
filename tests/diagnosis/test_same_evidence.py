"""The same evidence gives the same verdict, whether it was recorded or pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.recording import read_run
from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose
from holdfast.journal import JournalWriter
from holdfast.probes import Scope
from holdfast.probes.kernel_log import KernelLog
from holdfast.vocabulary import Diagnosis, Event, Output
from tests.diagnosis.test_logs import why
from tests.story import START, kernel, story

FRAME = b'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    loss.backward()\n'
LAUNCH_FAILED = FRAME + b"RuntimeError: CUDA error: unspecified launch failure\n"
# As the driver writes them; the texts behind the numbers are those of its documentation of Xid errors.
XIDS = {
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=100, name=python, GPU has fallen off the bus.": ("gpu-lost", 79),
    "NVRM: Xid (PCI:0000:3b:00): 48, pid=100, name=python, DBE (double bit error) ECC error": (
        "gpu-hardware-fault",
        48,
    ),
    "NVRM: Xid (PCI:0000:3b:00): 31, pid=100, name=python, Ch 00000008, intr 10000000. MMU Fault: ENGINE GRAPHICS": (
        "gpu-illegal-access",
        31,
    ),
    "NVRM: Xid (PCI:0000:3b:00): 13, pid=100, name=python, Graphics Exception: ESR 0x504648=0x10000e": (
        "gpu-illegal-access",
        13,
    ),
}


def _recorded(*events: Event, output: bytes = LAUNCH_FAILED, code: int = 1) -> Diagnosis:
    window = story(code, None, {"stderr": output}, list(events))
    return diagnose(window, find_endings(window))


def _cause(answer: Diagnosis) -> str | None:
    return answer.cause.id if answer.cause is not None else None


@pytest.mark.parametrize(("line", "cause", "number"), [(line, *meant) for line, meant in XIDS.items()])
def test_an_xid_is_named_from_a_recorded_run_as_from_a_pasted_log(line: str, cause: str, number: int) -> None:
    pasted = _cause(why(LAUNCH_FAILED.decode() + f"[ 8123.4] {line}\n"))
    by_kernel = _recorded(kernel(line))
    by_driver = _recorded(Event("gpu.xid", START + 59, {"index": 0, "xid": number}))
    assert (pasted, _cause(by_kernel), _cause(by_driver)) == (cause, cause, cause)
    assert by_kernel.cause is not None and by_driver.cause is not None
    assert {"kernel-log"} <= {item.source for item in by_kernel.cause.evidence}
    assert {"gpu"} <= {item.source for item in by_driver.cause.evidence}


@pytest.mark.parametrize(("line", "cause"), [(line, cause) for line, (cause, _) in XIDS.items()])
def test_from_the_kernels_log_through_the_journal_to_the_answer(tmp_path: Path, line: str, cause: str) -> None:
    """The probe reads the log's own records; `why` reads the journal from the disk."""
    kmsg = tmp_path / "dev" / "kmsg"
    kmsg.parent.mkdir()
    kmsg.write_text("")
    probe = KernelLog(Scope(1, 1, (), root=tmp_path))
    kmsg.write_text(f"4,8,2500000,-;{line}\n")
    run = tmp_path / "20260131-120000-xid"
    (run / "journal").mkdir(parents=True)
    writer = JournalWriter(run / "journal", "watcher")
    writer.event(Event("run.start", START, {"command": ["python", "train.py"], "script_pid": 100}))
    (told,) = probe.read(START + 50)
    assert isinstance(told, Event)
    writer.event(told)
    writer.output(Output("stderr", START + 59, LAUNCH_FAILED))
    writer.event(Event("script.exit", START + 60, {"code": 1, "signal": None}))
    writer.close()
    probe.close()
    assert _cause(read_run(run).diagnosis) == cause


def test_a_card_that_the_driver_lost_is_named() -> None:
    lost = Event("gpu.lost", START + 59, {"index": 1})
    assert _cause(_recorded(lost)) == "gpu-lost"
    assert _cause(_recorded(lost, output=b"", code=134)) == "gpu-lost"
    assert (
        _cause(why("RuntimeError: CUDA error: unspecified launch failure\nNVRM: GPU 1 is lost. GPU is lost.\n"))
        == "gpu-lost"
    )


def test_kernel_and_driver_telling_the_same_fault_are_two_witnesses_of_one_cause() -> None:
    line = next(iter(XIDS))
    both = _recorded(
        kernel(line), Event("gpu.xid", START + 59, {"index": 0, "xid": 79}), Event("gpu.lost", START + 59, {})
    )
    assert _cause(both) == "gpu-lost" and both.cause is not None and both.cause.confidence <= 0.98


def test_what_a_card_said_long_before_the_end_is_no_more_than_a_guess() -> None:
    early = _recorded(kernel(next(iter(XIDS)), at=START - 300), output=FRAME + b"KeyError: 'x'\n")
    assert _cause(early) == "unhandled-exception"


def test_a_slip_in_the_script_is_not_put_on_another_jobs_fault() -> None:
    """A fault of one process, told within the last minute, while this one had nothing to do with a GPU."""
    access = [line for line, (cause, _) in XIDS.items() if cause == "gpu-illegal-access"]
    assert access
    for line in access:
        foreign = line.replace("pid=100", "pid=4711")
        assert _cause(_recorded(kernel(foreign), output=FRAME + b"KeyError: 'x'\n")) == "unhandled-exception"
        assert _cause(_recorded(kernel(foreign), output=LAUNCH_FAILED)) == "gpu-illegal-access"


def test_kills_and_crashes_of_other_processes_stay_with_the_detectors() -> None:
    others = [
        kernel("Out of memory: Killed process 4711 (chrome) total-vm:1kB, anon-rss:1kB, file-rss:0kB"),
        kernel("chrome[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6"),
        kernel("blk_update_request: I/O error, dev sda, sector 1"),
    ]
    assert _cause(_recorded(*others, output=FRAME + b"KeyError: 'x'\n")) == "unhandled-exception"


def test_a_run_that_finished_is_told_of_its_card_and_a_healthy_one_of_nothing() -> None:
    xid = Event("gpu.xid", START + 30, {"index": 0, "xid": 48})
    answer = _recorded(xid, output=b"", code=0)
    assert answer.cause is None and [cause.id for cause in answer.noticed] == ["gpu-hardware-fault"]
    assert _recorded(output=b"", code=0).noticed == ()


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.93 GiB total capacity; 6.00 GiB already allocated; 1.00 GiB free; 6.10 GiB reserved in total by PyTorch)", "gpu-memory-exhausted"),
        ("[Errno 28] No space left on device: 'model.pt'", "disk-full"),
        ("mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)", "shape-mismatch"),
        ("CUDA error: uncorrectable ECC error encountered", "gpu-hardware-fault"),
        ("DataLoader worker (pid 629) is killed by signal: Killed. ", "worker-died"),
    ],
)  # fmt: skip
def test_an_exception_is_named_alike(said: str, cause: str) -> None:
    text = FRAME + f"RuntimeError: {said}\n".encode()
    assert (_cause(why(text.decode())), _cause(_recorded(output=text))) == (cause, cause)
