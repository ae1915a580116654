"""Scores `why` on a file of labelled logs: python -m tests.replay.real_logs PATH [--verbose]

One JSON object a line: id, text (or log), causes (any of them is right). A third, by a hash of the id, is kept apart as
held out while rules are written, and scored by itself.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.diagnosis.reading.scan import excerpt
from holdfast.diagnosis.verdict import diagnose_log

CONFIDENT = 0.8


def held_out(identity: str) -> bool:
    return hashlib.sha256(identity.encode()).digest()[0] % 3 == 0


def judge(entry: dict[str, Any]) -> tuple[str, str, float]:
    """right, wrong, confidently wrong or abstained; what was said; how surely."""
    text = str(entry.get("text") or entry.get("log") or "")
    answer = diagnose_log(excerpt(io.BytesIO(text.encode("utf-8", "surrogatepass"))))
    if answer.cause is None:
        return "abstained", ",".join(f"{cause.id} {cause.confidence}" for cause in answer.also[:3]), 0.0
    if answer.cause.id in entry["causes"]:
        return "right", answer.cause.id, answer.cause.confidence
    wrong = "confidently wrong" if answer.cause.confidence >= CONFIDENT else "wrong"
    return wrong, answer.cause.id, answer.cause.confidence


def table(entries: Sequence[dict[str, Any]], name: str) -> str:
    counts = Counter(judge(entry)[0] for entry in entries)
    told = len(entries) - counts["abstained"]
    return (
        f"{name}: {counts['right']} of {len(entries)} right, {counts['wrong']} wrong, {counts['confidently wrong']} "
        f"confidently wrong (>= {CONFIDENT}), {counts['abstained']} abstained; of those told {told} are "
        f"{100 * counts['right'] / max(1, told):.0f} % right"
    )


def calibration(entries: Sequence[dict[str, Any]]) -> str:
    judged = [judge(entry) for entry in entries]
    rows = ["confidence   verdicts  right"]
    for low, high in ((0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01)):
        band = [verdict for verdict, _, sure in judged if low <= sure < high]
        rows.append(f"{low:.1f} to {min(high, 1):.1f}   {len(band):8}  {band.count('right'):5}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--verbose", action="store_true", help="also those that are right")
    options = parser.parse_args()
    entries = [json.loads(line) for line in options.path.read_text().splitlines() if line.strip()]
    for entry in entries:
        verdict, said, sure = judge(entry)
        if options.verbose or verdict != "right":
            kept = "held out" if held_out(entry["id"]) else "dev"
            print(f"{entry['id']:12} {kept:8} {verdict:17} {sure:4.2f} {said:44} label {'|'.join(entry['causes'])}")
    print(table([entry for entry in entries if not held_out(entry["id"])], "development"))
    print(table([entry for entry in entries if held_out(entry["id"])], "held out"))
    print(table(entries, "all"))
    print(calibration(entries))


if __name__ == "__main__":
    main()
