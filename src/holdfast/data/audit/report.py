"""What an audit found, as data: of one table, of one file, of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    id: str
    path: str
    column: str
    count: int
    where: tuple[int, ...]  # rows, the first ones
    breaks_training: bool
    text: str

    def as_plain(self) -> dict[str, Any]:
        return {**asdict(self), "where": list(self.where)}

    @classmethod
    def of_plain(cls, plain: dict[str, Any]) -> Finding:
        return cls(**{**plain, "where": tuple(plain["where"])})


@dataclass(frozen=True)
class ColumnSummary:
    """For people: how a column looks."""

    name: str
    dtype: str
    bad: int
    low: float | None
    high: float | None
    mean: float | None
    deviation: float | None
    histogram: tuple[int, ...] = ()


@dataclass
class TableReport:
    path: str
    member: str
    format: str
    rows: int
    columns: list[ColumnSummary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    row_shape: tuple[int, ...] | None = None
    family: tuple[tuple[str, str], ...] = ()  # names and types of its columns, to compare with other files
    has_labels: bool = False  # the column that was named as such is in it

    def as_plain(self) -> dict[str, Any]:
        plain = asdict(self)
        plain["findings"] = [finding.as_plain() for finding in self.findings]
        return plain

    @classmethod
    def of_plain(cls, plain: dict[str, Any]) -> TableReport:
        columns = [ColumnSummary(**{**one, "histogram": tuple(one["histogram"])}) for one in plain["columns"]]
        return cls(
            plain["path"],
            plain["member"],
            plain["format"],
            plain["rows"],
            columns,
            [Finding.of_plain(one) for one in plain["findings"]],
            None if plain["row_shape"] is None else tuple(plain["row_shape"]),
            tuple((name, dtype) for name, dtype in plain["family"]),
            plain["has_labels"],
        )


@dataclass
class Report:
    files: int
    tables: list[TableReport]
    findings: list[Finding]  # all of them, those of the tables too; what breaks training first
    bytes: int = 0
    seconds: float = 0.0
    continued: int = 0  # files whose result an interrupted audit had left

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def labels_found(self) -> bool:
        return any(table.has_labels for table in self.tables)

    @property
    def breaks_training(self) -> bool:
        return any(finding.breaks_training for finding in self.findings)

    @property
    def clean(self) -> bool:
        return not self.findings


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (not finding.breaks_training, finding.path))
