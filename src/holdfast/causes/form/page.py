"""The list of causes for people: python -m holdfast.causes.form.page > docs/causes.md"""

from __future__ import annotations

from holdfast.causes import CAUSES, FAMILIES
from holdfast.causes.form.reached import not_reached
from holdfast.causes.form.record import CauseRecord

HEADINGS = {
    "memory": "Memory",
    "limits": "What else is finite",
    "gpu": "GPU, driver and libraries",
    "data": "Data and files",
    "numerics": "Numbers that go wrong",
    "process": "Processes",
    "ranks": "Many ranks",
}


def page() -> str:
    missing = not_reached(CAUSES.values())
    told = [
        "# Causes",
        "",
        f"What `holdfast why` can answer with: {len(CAUSES) - len(missing)} causes. Made from the records in `src/holdfast/causes/`",
        "by `python -m holdfast.causes.form.page`. Restart: whether `holdfast run` starts such a run again. Of those marked",
        f"*not reached yet* ({len(missing)}) there are words and remedies, but neither a rule nor a detector finds them.",
    ]
    for family in FAMILIES:
        told += [
            "",
            f"## {HEADINGS[family]}",
            "",
            "| id | what it means | certain when | restart |",
            "| --- | --- | --- | --- |",
        ]
        told += [_row(record, record.id in missing) for record in CAUSES.values() if record.family == family]
    return "\n".join(told) + "\n"


def _row(record: CauseRecord, missing: bool) -> str:
    mark = "*Not reached yet.* " if missing else ""
    restart = record.restart.kind.value if record.restart is not None else "no"
    return f"| `{record.id}` | {mark}**{record.title}.** {record.meaning} | {record.sure} | {restart} |"


if __name__ == "__main__":
    print(page(), end="")
