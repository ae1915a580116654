"""Rules of the user's own, by a pandera schema: what breaks them is told with its rows, a table that keeps them passes."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from holdfast.cli import main
from holdfast.data.audit import Request, audit, own_rules
from holdfast.data.audit.own_rules import OwnRules

RULES = """
import pandera.pandas as pa
schema = pa.DataFrameSchema({
    "age": pa.Column(int, pa.Check.in_range(0, 120)),
    "city": pa.Column(str, pa.Check.isin(["Rome", "Oslo"])),
})
"""


def table(rows: int = 60) -> pandas.DataFrame:
    return pandas.DataFrame({"age": [20 + row % 50 for row in range(rows)], "city": ["Rome", "Oslo"] * (rows // 2)})


@pytest.fixture
def rules(tmp_path: Path) -> OwnRules:
    (tmp_path / "checks.py").write_text(RULES)
    return OwnRules(tmp_path / "checks.py")


def write(path: Path, frame: pandas.DataFrame) -> Path:
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_rows_that_break_a_rule_are_told_and_others_pass(
    name: str, rules: OwnRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_rules, "PIECE_ROWS", 16)
    assert audit(Request([write(tmp_path / name, table())], rules=rules)).findings == []
    spoilt = table()
    spoilt.loc[[3, 40], "age"] = 200
    spoilt.loc[59, "city"] = "Paris"
    found = audit(Request([write(tmp_path / name, spoilt)], rules=rules)).findings
    assert {(one.id, one.column, one.count, one.where) for one in found if "rule" in one.text} == {
        ("range", "age", 2, (3, 40)),
        ("range", "city", 1, (59,)),
    }


def test_a_column_that_is_not_there_and_one_of_another_type_are_told_once(rules: OwnRules, tmp_path: Path) -> None:
    frame = table().drop(columns="city").assign(age=0.5)
    found = list(rules.findings([write(tmp_path / "t.parquet", frame)]))
    assert sorted((one.id, one.column, one.count) for one in found) == [("dtype", "age", 1), ("shape", "city", 1)]


@pytest.mark.parametrize(
    ("text", "said"), [("x = 1", "has 0 pandera schemas"), ("1 +", "SyntaxError"), ("import nothing_here", "nothing_here"), (None, "no such file")]
)  # fmt: skip
def test_rules_that_cannot_be_used_are_one_line(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t.csv", table())
    if text is not None:
        (tmp_path / "checks.py").write_text(text)
    code = main(["audit", str(tmp_path / "t.csv"), "--rules", str(tmp_path / "checks.py"), "--dir", str(tmp_path)])
    told = capsys.readouterr().err
    assert code == 2 and said in told and told.count("\n") == 1
