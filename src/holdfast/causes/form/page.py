"""The list of causes for people: python -m holdfast.causes.form.page > docs/causes.md"""

from __future__ import annotations

from holdfast.causes import CAUSES, FAMILIES
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
    told = [
        "# Causes",
        "",
        f"What `holdfast why` can answer with: {len(CAUSES)} causes. Made from the records in `src/holdfast/causes/` by",
        "`python -m holdfast.causes.form.page`. Restart: whether `holdfast run` starts such a run again.",
    ]
    for family in FAMILIES:
        told += [
            "",
            f"## {HEADINGS[family]}",
            "",
            "| id | what it means | certain when | restart |",
            "| --- | --- | --- | --- |",
        ]
        told += [_row(record) for record in CAUSES.values() if record.family == family]
    return "\n".join(told) + "\n"


def _row(record: CauseRecord) -> str:
    restart = record.restart.kind.value if record.restart is not None else "no"
    return f"| `{record.id}` | **{record.title}.** {record.meaning} | {record.sure} | {restart} |"


if __name__ == "__main__":
    print(page(), end="")
