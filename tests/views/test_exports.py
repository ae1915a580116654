"""A record handed to other programs, read back by their own readers."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from tests.fake_training import fake_training
from tests.views.recorded import STEPS, TOKEN, RecordedRun
from tests.workplace import HOLDFAST, PATIENCE_S, Workplace

parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("tensorboard")


def recorded(state: Path, name: str = "one") -> RecordedRun:
    run = RecordedRun(state, name)
    run.findings()
    run.steps()
    run.end(1)
    return run


def export(state: Path, *words: str) -> int:
    return main(["runs", "export", *words, "--dir", str(state)])


# -- Parquet


def test_every_sample_and_event_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.views import parquet_export

    monkeypatch.setattr(parquet_export, "ROWS", 100)
    run = recorded(tmp_path)
    target = tmp_path / "run.parquet"
    assert export(tmp_path, "one", "--parquet", str(target)) == 0
    table = parquet.read_table(target)
    assert table.column_names == ["run", "at", "signal", "value", "step", "reason"]
    assert table.num_rows == STEPS * 12 and parquet.ParquetFile(target).num_row_groups == 5
    rows = table.to_pylist()
    assert {row["run"] for row in rows} == {run.path.name}
    losses = [row for row in rows if row["signal"] == "train.loss"]
    assert [row["step"] for row in losses] == list(range(1, STEPS + 1))
    assert (losses[1]["value"], math.isnan(losses[-1]["value"])) == (0.5, True)
    assert losses[0]["at"].timestamp() == pytest.approx(run.began + 1, abs=1e-5)
    missing = next(row for row in rows if row["signal"] == "disk[/].free_bytes")
    assert (missing["value"], missing["step"], missing["reason"]) == (None, None, "not readable")
    events = parquet.read_table(tmp_path / "run.events.parquet").to_pylist()
    assert [event["kind"] for event in events][:2] == ["run.start", "machine"] and events[-1]["kind"] == "run.end"
    assert json.loads(next(event for event in events if event["kind"] == "rescue.k")["data"])["k"] == 4
    assert TOKEN not in str(events) and "***" in str(events)
    verdict = json.loads(table.schema.metadata[b"holdfast.verdict"])
    assert (verdict["run"], verdict["outcome"]) == (run.path.name, "failed")


# -- TensorBoard


def read_back(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    return found


def text(found: Any, tag: str) -> list[str]:
    return [event.tensor_proto.string_val[0].decode() for event in found.Tensors(tag)]


def test_scalars_stand_at_the_runs_steps_and_the_verdict_as_text(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    (tmp_path / "logs" / run.path.name).mkdir(parents=True)
    (tmp_path / "logs" / run.path.name / "events.out.tfevents.of-the-user").touch()
    for _ in range(2):  # what was exported before is replaced
        assert export(tmp_path, "--tensorboard", str(tmp_path / "logs")) == 0
    found = read_back(tmp_path / "logs" / run.path.name)
    losses = found.Scalars("train/loss")
    assert [event.step for event in losses] == list(range(1, STEPS + 1))
    assert losses[1].value == 0.5 and losses[1].wall_time == pytest.approx(run.began + 2, abs=1e-3)
    assert [event.step for event in found.Scalars("host/memory_available_bytes")] == list(range(1, STEPS + 1))
    assert text(found, "holdfast/noticed/memory-leak") == ["    memory-leak (90%): it <b>grows</b>·[2J ***"] * 2
    assert "    it <b>grows</b>·[2J ***" in text(found, "holdfast/timeline")
    (verdict,) = text(found, "holdfast/verdict")
    assert "exit code 1" in verdict and all(line.startswith("    ") for line in verdict.splitlines())
    assert len(list((tmp_path / "logs" / run.path.name).iterdir())) == 2


def test_a_run_that_never_trained_is_shown_by_its_seconds(tmp_path: Path) -> None:
    from holdfast.vocabulary import Sample

    run = RecordedRun(tmp_path, "script")
    for second in range(5):
        run.writer.samples(run.began + second, [Sample("job.rss_bytes", second * 1e6, run.began + second)])
    run.end()
    assert export(tmp_path, "--tensorboard", str(tmp_path / "logs")) == 0
    found = read_back(tmp_path / "logs" / run.path.name)
    assert [event.step for event in found.Scalars("job/rss_bytes")] == list(range(5))


def test_a_live_run_is_followed_to_its_end_without_tensorflow(workplace: Workplace) -> None:
    process = workplace.start(fake_training(workplace, "time.sleep(0.03)"))
    assert process.stdout is not None and process.stdout.readline().startswith(b"attempt 1")
    source = (
        "import sys; from holdfast.cli import main; code = main(sys.argv[1:]); print('tensorflow' in sys.modules, code)"
    )
    words = ["runs", "export", "--tensorboard", "logs", "--follow"]
    followed = subprocess.run(
        [sys.executable, "-c", source, *words], cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert process.wait(PATIENCE_S) == 0
    assert followed.stdout.endswith(b"False 0\n"), followed.stderr
    (folder,) = (workplace.path / "logs").iterdir()
    found = read_back(folder)
    assert found.Scalars("train/steps_count")[-1].value == 60
    assert text(found, "holdfast/verdict")[0].startswith("    The run finished.")


# -- where they cannot be written, or are not there


@pytest.mark.parametrize("words", [["--parquet", "run.parquet"], ["--tensorboard", "logs"], ["--prometheus", "x.prom"]])
def test_a_disk_without_room_is_one_line_and_what_was_there_stays(tmp_path: Path, words: list[str]) -> None:
    recorded(tmp_path)
    (tmp_path / "run.parquet").write_text("of yesterday")
    done = subprocess.run(
        [*HOLDFAST, "runs", "export", *words, "--dir", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
        },  # Python would leave compiled files of 64 bytes for the other tests
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)),
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"holdfast: cannot write ") and done.stderr.count(b"\n") == 1, done.stderr
    assert (tmp_path / "run.parquet").read_text() == "of yesterday"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    "missing",
    [
        ("pyarrow", ["--parquet", "x"], "parquet"),
        ("tensorboard.compat.proto", ["--tensorboard", "x"], "tensorboard"),
        ("prometheus_client", ["--prometheus", "x"], "prometheus"),
    ],
)
def test_what_is_not_installed_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: tuple[str, list[str], str],
) -> None:
    from holdfast.cli import metrics

    module, words, extra = missing
    metrics._metrics.cache_clear()
    recorded(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    for ours in ("parquet_export", "tensorboard_export", "metrics"):
        monkeypatch.delitem(sys.modules, f"holdfast.views.{ours}", raising=False)
        monkeypatch.delattr(f"holdfast.views.{ours}", raising=False)
    assert export(tmp_path, *words) == 2
    assert f"pip install 'holdfast[{extra}]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["runs", "--parquet", "x"],
        ["runs", "export"],
        ["runs", "export", "--follow", "--parquet", "x"],
        ["runs", "export", "one", "--prometheus", "x"],
        ["runs", "export", "nobody", "--parquet", "x"],
        ["runs", "import"],
    ],
)
def test_misuse_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    recorded(tmp_path)
    assert main([*words, "--dir", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
