from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.actions import failure_command, post_verdict
from holdfast.cli.recording import read_run
from holdfast.journal import JournalWriter
from holdfast.masking import masked_text
from holdfast.recorded_events import RecordedAction, RecordedDecision
from holdfast.supervisor.hardening import OOM_SCORE_ADJ, restore_oom_score
from holdfast.views.why_json import as_json, masked_json

NO_FAILURE = ("completed", "recovered", "stopped", "running")  # who stopped it knows that
STREAM = "after"  # a journal's stream has one writer


class AfterFailureVerb:
    """Tells others of a run that failed; `holdfast run --on-failure --notify` starts it. Not for the command line."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", type=Path)

    def run(self, options: argparse.Namespace) -> int:
        wanted = json.load(sys.stdin)
        if Path("/proc/self/oom_score_adj").read_text().strip() == str(OOM_SCORE_ADJ):
            restore_oom_score("0")  # what protects Holdfast does not protect what it starts
        recording = read_run(options.run)
        diagnosis = recording.diagnosis
        if diagnosis.outcome in NO_FAILURE:
            return 0
        verdict = masked_json(as_json(options.run.name, recording.window, diagnosis)).encode()
        about = {
            "HOLDFAST_RUN": options.run.name,
            "HOLDFAST_OUTCOME": diagnosis.outcome,
            "HOLDFAST_CAUSE": diagnosis.cause.id if diagnosis.cause is not None else "",
        }
        tell(options.run, wanted, verdict, {**os.environ, **about})
        return 0


def tell(run: Path, wanted: dict[str, str], verdict: bytes, environment: dict[str, str]) -> None:
    """Both at once: neither waits for the other."""
    acts: list[tuple[str, str, Callable[[], str]]] = []
    if command := wanted.get("command"):
        log = run / "on-failure.log"
        words = f"ran the command for a failure: {masked_text(command)}"
        acts.append(("hook:command", words, lambda: failure_command.carry_out(command, verdict, environment, log)))
    if url := wanted.get("url"):
        words = f"sent the verdict to {post_verdict.shown_address(url)}"
        acts.append(("hook:notify", words, lambda: post_verdict.carry_out(url, verdict)))
    writer, lock = JournalWriter(run / "journal", STREAM), threading.Lock()

    def carry_out(key: str, words: str, act: Callable[[], str]) -> None:
        result = act()
        with lock:
            writer.event(RecordedAction(key, words, result).event(time.time()))

    for key, words, _ in acts:
        writer.event(RecordedDecision("note", key, words).event(time.time()))
    threads = [threading.Thread(target=carry_out, args=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
