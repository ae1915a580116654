"""What Prometheus is told, read back by its own parser."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main, metrics
from tests.views.recorded import STEPS, RecordedRun

parser = pytest.importorskip("prometheus_client.parser")

Told = dict[str, dict[tuple[tuple[str, str], ...], float]]


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    metrics._metrics.cache_clear()


def families(state: Path) -> list[Any]:
    return list(parser.text_string_to_metric_families(metrics.metrics_text(str(state)).decode()))


def scraped(state: Path) -> Told:
    found: Told = {}
    for family in families(state):
        for sample in family.samples:
            labels = tuple(sorted((key, value) for key, value in sample.labels.items() if key != "run"))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_a_run_that_goes_on_is_told_with_its_numbers(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, "live")
    run.findings()
    run.steps()
    told = scraped(tmp_path)
    assert {family.type for family in families(tmp_path)} == {"gauge", "counter"}
    assert "" not in {family.documentation for family in families(tmp_path)}
    one = {name: values[()] for name, values in told.items() if () in values}
    assert one["holdfast_up"] == 1 and one["holdfast_steps_total"] == STEPS
    assert one["holdfast_last_step_time_seconds"] == pytest.approx(run.began + STEPS, abs=1e-3)
    assert one["holdfast_start_time_seconds"] == pytest.approx(run.began, abs=1e-3)
    assert math.isnan(one["holdfast_loss"]) and one["holdfast_gradient_norm"] == 0.5
    assert (one["holdfast_step_seconds"], one["holdfast_wait_ratio"]) == (0.25, 0.1)
    assert (one["holdfast_restarts_total"], one["holdfast_rescues_total"], one["holdfast_micro_batches"]) == (1, 1, 4)
    assert told["holdfast_findings_total"] == {(("cause", "memory-leak"),): 2}
    used, limit = told["holdfast_memory_used_bytes"], told["holdfast_memory_limit_bytes"]
    assert used[(("where", "host"),)] == 5e9 and limit[(("where", "host"),)] == 8e9
    assert used[(("where", "job"),)] == 1e9 and used[(("where", "GPU 0"),)] == 2e9
    assert told["holdfast_gpu_utilisation_ratio"] == {(("gpu", "0"),): 0.87}
    ((labels, _),) = told["holdfast_run_info"].items()
    assert "s3cr3t" not in dict(labels)["command"] and 'a "quoted" \\ word' in dict(labels)["command"]


def test_the_next_scrape_tells_what_is_new_and_that_it_has_ended(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path, "live")
    run.steps(last=3)
    assert scraped(tmp_path)["holdfast_steps_total"][()] == 3
    run.steps(first=4, last=7)
    assert scraped(tmp_path)["holdfast_steps_total"][()] == 7
    run.end(1)
    told = scraped(tmp_path)
    assert told["holdfast_up"][()] == 0 and dict(next(iter(told["holdfast_run_info"])))["outcome"] == "failed"


def test_of_old_runs_and_dead_ones_nothing_is_up(tmp_path: Path) -> None:
    for segment in _ended(tmp_path, "old").glob("journal/*"):
        os.utime(segment, (1e9, 1e9))
    dead = RecordedRun(tmp_path, "dead", alive=False)
    dead.steps(last=2)
    (tmp_path / "runs" / "20260101-000000-empty" / "journal").mkdir(parents=True)
    assert scraped(tmp_path)["holdfast_up"] == {(): 0}
    assert "20260101-000000-dead" in metrics.metrics_text(str(tmp_path)).decode()


def _ended(state: Path, name: str) -> Path:
    run = RecordedRun(state, name)
    run.end()
    return run.path


def test_where_nothing_runs_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert scraped(tmp_path) == {}


def test_a_file_for_the_textfile_collector_appears_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RecordedRun(tmp_path, "live").steps(last=3)
    target = tmp_path / "out" / "holdfast.prom"
    words = ["runs", "export", "--prometheus", str(target), "--dir", str(tmp_path)]
    assert main(words) == 2
    assert capsys.readouterr().err == f"holdfast: cannot write {target}: No such file or directory\n"
    target.parent.mkdir()
    target.write_text("of an hour ago")
    assert main(words) == 0
    assert b"holdfast_steps_total" in target.read_bytes() and list(target.parent.iterdir()) == [target]
