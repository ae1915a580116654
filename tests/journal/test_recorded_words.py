"""The typed words that are recorded by one room and read by another: as they lie on disk, and back."""

from __future__ import annotations

import json
import signal

import pytest

from holdfast.recorded_events import DetectorOff, Exit, MicroBatches, RecordedAction, RecordedDecision, RecordedFinding
from holdfast.vocabulary import Decision, DecisionKind, Event, Evidence, Finding, MemoryGrowth, Policy

GROWTH = MemoryGrowth(10.0, 20.0, 30.0, 5.0, bounded=False, unexplained=False, holder="Model.history")
LEAK = Finding("host-memory-leak", 0.85, (Evidence("memory grows", "telemetry"),), headline="Leaks", growth=GROWTH)
ON_DISK = [
    (
        RecordedFinding.by(LEAK),
        "finding",
        {"cause": "host-memory-leak", "confidence": 0.85, "key": "host-memory-leak", "evidence": ["memory grows"],
         "headline": "Leaks", "holder": "Model.history"},
    ),
    (
        RecordedDecision.by(Decision(DecisionKind.WARN, "disk-full:disk /", "disk /: full in about 9 s")),
        "decision",
        {"decision": "warn", "key": "disk-full:disk /", "text": "disk /: full in about 9 s"},
    ),
    (RecordedAction("restart:2", "killed", "started"), "action", {"key": "restart:2", "decision": "killed", "result": "started"}),
    (Exit(137, signal.SIGKILL), "script.exit", {"code": 137, "signal": 9}),
    (Exit(143, 15, waiting=True), "script.exit", {"code": 143, "signal": 15, "waiting": True}),
    (
        DetectorOff("leak", "KeyError: 'x'", ("a.py:3 in find: x",)),
        "detector.off",
        {"detector": "leak", "reason": "KeyError: 'x'", "frames": ["a.py:3 in find: x"]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("word", "kind", "data"), ON_DISK, ids=[kind for _, kind, _ in ON_DISK])
def test_on_disk_and_back(
    word: RecordedFinding | RecordedDecision | RecordedAction | Exit | DetectorOff, kind: str, data: dict[str, object]
) -> None:
    event = word.event(7.0)
    assert (event.kind, event.at, json.loads(json.dumps(dict(event.data)))) == (kind, 7.0, data)
    assert type(word).of(Event(kind, 7.0, data)) == word


def test_what_was_recorded_without_everything_is_read_all_the_same() -> None:
    for word in (RecordedFinding, RecordedDecision, RecordedAction, DetectorOff, MicroBatches):
        assert isinstance(word.of(Event("x", 0.0, {})), word)
    assert Exit.of(Event("script.exit", 0.0, {})).code != 0, "unknown is no success"


def test_an_exit_by_its_status() -> None:
    assert Exit.by(3 << 8) == Exit(3) and Exit.by(9) == Exit(137, 9)
    assert Exit(3).event(1.0, attempt=2).kind == "attempt.exit"


def test_names_are_words_for_json_and_for_people() -> None:
    assert json.dumps([Policy.OBSERVE, DecisionKind.RESTART]) == '["observe", "restart"]'
    assert f"{Policy.PROTECT}" == "protect"
