"""What an audit found, for programs. The shape is a contract: fields are added, never changed."""

from __future__ import annotations

import json

from holdfast.data.audit.report import Report


def as_json(report: Report) -> str:
    answer = {
        "clean": report.clean,
        "breaks_training": report.breaks_training,
        "files": report.files,
        "rows": report.rows,
        "bytes": report.bytes,
        "findings": [finding.as_plain() for finding in report.findings],
    }
    return json.dumps(answer, indent=2)
