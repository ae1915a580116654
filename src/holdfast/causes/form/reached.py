"""Which causes can be found at all: by a rule of their own that is surer than a guess, or by code that names them.

Read from the records and from the source, so that nobody keeps a list of those that nothing finds yet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from holdfast.causes.form.record import CauseRecord

SOURCE = Path(__file__).parents[2]
FINDERS = ("detectors", "diagnosis")
SURE = 0.5  # below it a finding is never the answer


def not_reached(records: Iterable[CauseRecord], source: Path = SOURCE) -> frozenset[str]:
    named = _named_by_finders(source)
    return frozenset(record.id for record in records if not by_its_rules(record) and record.id not in named)


def by_its_rules(record: CauseRecord) -> bool:
    sure = [rule.confidence for rule in (*record.exceptions, *record.lines)] + [xid.confidence for xid in record.xids]
    sure += [confidence for confidence, _ in record.last_frames]
    return max([*sure, *record.signals.values()], default=0.0) >= SURE


def _named_by_finders(source: Path) -> frozenset[str]:
    files = [path for folder in FINDERS for path in (source / folder).rglob("*.py")]
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
