"""Endings that somebody or something caused, told apart."""

from __future__ import annotations

import pytest

from holdfast.detectors import find_endings
from holdfast.vocabulary import Event
from tests.story import GIB, START, kernel, story


def causes(*arguments: object, **more: object) -> list[str]:
    findings = find_endings(story(*arguments, **more))  # type: ignore[arg-type]
    return [finding.cause for finding in sorted(findings, key=lambda finding: -finding.confidence)]


@pytest.mark.parametrize(
    ("number", "cause"),
    [(15, "terminated"), (24, "terminated"), (10, "terminated"), (2, "interrupted"), (1, "terminal-closed"),
     (9, "killed"), (11, "native-crash"), (6, "native-crash"), (7, "native-crash"), (4, "illegal-instruction")],
)  # fmt: skip
def test_each_signal_has_its_cause(number: int, cause: str) -> None:
    assert causes(128 + number, number, host__oom_kill_count=[1, 1]) == [cause]


def test_a_shells_exit_code_speaks_of_its_childs_signal() -> None:
    assert causes(139, None) == ["native-crash"]


def test_an_ordinary_exit_code_says_nothing() -> None:
    assert causes(3, None) == []
    assert causes(0, None) == []


def test_a_signal_that_was_handled_explains_nothing_by_itself() -> None:
    told = Event("signal.received", START + 58, {"signal": 15, "sender_pid": 7, "sender_name": "slurmstepd"})
    assert find_endings(story(0, None, events=[told])) == []
    (guess,) = find_endings(story(1, None, events=[told]))
    assert guess.cause == "terminated" and guess.confidence < 0.5
    (sure,) = find_endings(story(143, None, events=[told]))
    assert sure.confidence > 0.5 and "from slurmstepd (pid 7)" in sure.evidence[0].text


def test_a_checkpoint_that_could_not_be_put_back_is_why_the_next_attempt_ended() -> None:
    refused = Event("checkpoint.mismatch", START + 50, {"reason": "weights of (16, 8) were saved"})
    (found,) = find_endings(story(2, None, events=[refused]))
    assert found.cause == "checkpoint-mismatch" and "weights of (16, 8) were saved" in found.evidence[0].text
    assert causes(0, None, events=[refused]) == []


def test_a_signal_long_before_the_end_is_not_the_reason() -> None:
    told = Event("signal.received", START - 100, {"signal": 10, "sender_pid": 7, "sender_name": ""})
    assert causes(1, None, events=[told]) == []


def test_a_crash_after_ctrl_c_is_still_a_crash() -> None:
    told = Event("signal.received", START + 58, {"signal": 2, "sender_pid": 0, "sender_name": ""})
    assert causes(139, 11, events=[told]) == ["native-crash"]


def test_the_kernels_line_about_a_segfault_is_evidence_only_for_our_process() -> None:
    line = "python[100]: segfault at 8 ip 00007f rsp 00007f error 4 in libdecode.so[7f+1000]"
    ours = find_endings(story(139, 11, events=[kernel(line)]))[0]
    theirs = find_endings(story(139, 11, events=[kernel(line.replace("100", "222"))]))[0]
    assert any("libdecode.so" in item.text for item in ours.evidence)
    assert not any("libdecode.so" in item.text for item in theirs.evidence)


def test_a_machine_that_booted_since_went_down() -> None:
    aftermath = Event("aftermath", START + 9999, {"boot_id": "now", "last_at": START + 30})
    assert causes(None, events=[aftermath]) == ["machine-went-down"]


def test_whoever_reads_a_record_on_another_machine_knows_nothing_of_its_boots() -> None:
    machine = Event("machine", START, {"boot_id": "before", "hostname": "node1"})
    here = Event("aftermath", START + 900, {"boot_id": "after", "hostname": "node1"})
    elsewhere = Event("aftermath", START + 900, {"boot_id": "other", "hostname": "laptop"})

    assert causes(None, events=[machine, here]) == ["machine-went-down"]
    assert causes(None, events=[machine, elsewhere]) == []


def test_the_last_readings_stand_beside_a_machine_that_went_down() -> None:
    machine = Event("machine", START, {"boot_id": "before"})
    after = Event("aftermath", START + 900, {"boot_id": "after"})
    readings = {
        "gpu0__power_watts": [690.0],
        "gpu0__temperature_celsius": [91.0],
        "host__memory_available_bytes": [GIB],
    }
    (found,) = find_endings(story(None, events=[machine, after], **readings))
    told = [item.text for item in found.evidence[2:]]

    assert told[0].startswith("the last reading: 1 GiB")
    assert told[1:] == ["the last reading: GPU 0 had 91 °C", "the last reading: GPU 0 drew 690 W"]


def test_the_same_boot_did_not_go_down() -> None:
    aftermath = Event("aftermath", START + 9999, {"boot_id": "then", "last_at": START + 30})
    assert causes(None, events=[aftermath]) == []


def test_limits_reached_are_found_only_in_a_run_that_failed() -> None:
    full = Event("disk.full", START + 60, {"mountpoint": "/data", "free_bytes": 0, "total_bytes": 64e6})
    used: dict[str, list[float | None]] = {
        "shm__total_bytes": [GIB] * 61, "shm__free_bytes": [0.0] * 61,
        "job__open_files_count": [64.0], "job__open_files_limit_count": [64.0],
        "cgroup__pids_refused_count": [0.0, 2.0],
    }  # fmt: skip
    found = causes(1, None, events=[full], **used)
    assert set(found) == {"disk-full", "shared-memory-exhausted", "too-many-open-files", "too-many-processes"}
    assert causes(0, None, events=[full], **used) == []


def test_a_full_disk_elsewhere_kills_nobody() -> None:
    full = Event("disk.full", START + 60, {"mountpoint": "/data", "free_bytes": 0, "total_bytes": 64e6})
    assert causes(137, 9, events=[full], host__oom_kill_count=[1, 1]) == ["killed"]
    assert "disk-full" in causes(1, None, events=[full])


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("timeout -k 3 57 python train.py", "terminated"),
        ("timeout --kill-after=3s --foreground 0.95m python train.py", "terminated"),
        ("timeout -s KILL 1m python train.py", "terminated"),
        ("timeout 2h python train.py", "killed"),
        ("timeout 5 ffmpeg -i clip.mp4", "killed"),
        ("timeout", "killed"),
    ],
)
def test_a_kill_when_the_time_given_to_timeout_is_over_is_that_time_limit(command: str, cause: str) -> None:
    limited = Event("process.appeared", START, {"pid": 99, "name": "timeout", "command": command})
    assert causes(137, 9, events=[limited], host__oom_kill_count=[0, 0]) == [cause]
