"""What the time goes into that training waits for, by the stacks of whoever prepares the data; and what workers would bring."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.causes import CAUSES
from holdfast.detectors.input_stages import Stages, of_thread, stages, with_workers
from holdfast.detectors.starvation import find
from holdfast.diagnosis.remedies import remedies_for
from holdfast.vocabulary import Event, Window
from tests.story import START, story

SITE = "/opt/venv/lib/python3.12/site-packages"
FETCH = [f"{SITE}/torch/utils/data/_utils/fetch.py", 54, "fetch", ""]
WORKER = [f"{SITE}/torch/utils/data/_utils/worker.py", 300, "_worker_loop", ""]
QUEUE = [f"{SITE}/../multiprocessing/queues.py", 103, "get", ""]
SCRIPT_OPS = [f"{SITE}/tensorflow/python/ops/script_ops.py", 230, "__call__", ""]


def own(code: str, function: str = "__getitem__") -> list[Any]:
    return ["data.py", 12, function, code]


def thread(*frames: list[Any], **about: Any) -> dict[str, Any]:
    return {
        "pid": 100,
        "state": "R",
        "wait": "",
        "on": "",
        "file": "",
        "file_system": "",
        "frames": list(frames),
        **about,
    }


SEEN = {
    "decode": thread([f"{SITE}/PIL/ImageFile.py", 9, "load", ""], own("x = Image.open(path)"), FETCH),
    "decode ": thread([f"{SITE}/PIL/Image.py", 9, "copy", ""], own("x = Image.open(path).convert('RGB').resize((64, 64))"), FETCH),
    "resize": thread([f"{SITE}/PIL/Image.py", 9, "resize", ""], [f"{SITE}/torchvision/transforms/functional.py", 1, "resize", ""], own("x = t(x)"), FETCH),
    "resize ": thread(own("x = cv2.resize(x, (64, 64))"), FETCH),
    "augment": thread([f"{SITE}/PIL/Image.py", 9, "rotate", ""], [f"{SITE}/torchvision/transforms/functional.py", 1, "rotate", ""], own("x = t(x)"), FETCH),
    "read": thread(own("row = table[i]"), FETCH, WORKER, state="D", wait="read", on="file"),
    "read ": thread(own("row = client.row(i)"), FETCH, WORKER, state="S", wait="read", on="socket"),
    "read  ": thread(own("return np.load(self.paths[i])"), FETCH),
    "transfer": thread([f"{SITE}/torch/utils/data/_utils/collate.py", 9, "default_collate", ""], FETCH),
    "sleep": thread(own("time.sleep(0.1)"), FETCH, state="S", wait="sleep"),
    "own": thread(own("ranks = sorted(row)", "batches"), SCRIPT_OPS),
    "own ": thread([f"{SITE}/tensorflow/python/autograph/impl/api.py", 1, "converted_call", ""], ["/tmp/__autograph_generated_filex.py", 28, "loop_body", ""], ["/tmp/__autograph_generated_filex.py", 30, "work", ""], SCRIPT_OPS),
}  # fmt: skip
IDLE = {
    "a worker that waits for work": thread(QUEUE, WORKER, pid=101),
    "the training process, which waits for its workers": thread(
        [f"{SITE}/torch/utils/data/dataloader.py", 1, "_try_get_data", ""], own("for x, y in loader:", "main")
    ),
    "a model": thread([f"{SITE}/torch/nn/modules/linear.py", 1, "forward", ""], own("y = model(x)", "main")),
}


@pytest.mark.parametrize("stage", SEEN)
def test_the_stage_is_told_by_a_stack(stage: str) -> None:
    found = of_thread(SEEN[stage])
    assert found is not None and found.stage == stage.strip()


@pytest.mark.parametrize("what", IDLE)
def test_whoever_prepares_nothing_tells_nothing(what: str) -> None:
    assert of_thread(IDLE[what]) is None


def starved(*threads: dict[str, Any], ratio: float = 0.8, step_s: float = 0.1, **more: list[Any]) -> Window:
    about = {"looks": [[one] for one in threads], "trainers": [100], "cpus": 8}
    series: dict[str, list[Any]] = {
        "train__steps_count": [(i + 1) / step_s for i in range(14)],
        "train__wait_ratio": [ratio] * 14,
        "train__step_s": [step_s] * 14,
    }
    return story(None, events=[Event("input.stacks", START + 8, about)], **(series | more))


def test_the_verdict_names_stage_line_and_file_system_and_what_workers_would_bring() -> None:
    on_nfs = {"file": "/data/rows.bin", "file_system": "nfs4 at /data"}
    finding = find(starved(*[SEEN["read"] | on_nfs] * 5, SEEN["decode"]))
    assert finding is not None and finding.headline == "Input starved: reading takes the time"
    told = [one.text for one in finding.evidence]
    assert told[1] == "reading takes the time (5 of 6 looks), at data.py:12 in __getitem__: row = table[i]"
    assert told[2] == "it reads /data/rows.bin (nfs4 at /data)"
    assert "4 workers beside the training would make a step about 20 ms: 5.0 times as fast" in told
    assert told[-1] == "with data that is always there a step would take 20 ms"
    advised = [one.how for one in remedies_for(finding, "torch")]
    assert "num_workers=4" in advised[0] and any("rsync -a /data/" in how for how in advised)
    assert not any(
        "rsync" in one.how for one in remedies_for(find(starved(*[SEEN["read"]] * 5)) or finding, "torch")[:2]
    )


def test_a_function_that_tensorflow_has_made_a_copy_of_is_named() -> None:
    found = of_thread(SEEN["own "])
    assert found is not None and found.line == "the function work"


DECODES = {"call": "map", "function": "load", "place": "/home/me/train.py:3", "parallel": False,
           "does": ["read", "decode", "resize"], "operations": ["DecodeJpeg", "ReadFile", "ResizeBilinear"]}  # fmt: skip


def pipeline(*calls: dict[str, Any], ahead: bool = False, cpu_s: float = 1.0) -> Any:
    series: dict[str, list[Any]] = {
        "train__steps_count": [(i + 1) / 0.1 for i in range(14)],
        "train__wait_ratio": [0.9] * 14,
        "train__step_s": [0.1] * 14,
        "job__cpu_s": [cpu_s * i for i in range(14)],
    }
    events = [
        Event("data.pipeline", START, {"calls": list(calls), "ahead": ahead}),
        Event("data.pipeline", START + 1, {"calls": [], "ahead": False}),  # of a look at the data
        Event("input.stacks", START + 8, {"looks": [[]] * 20, "trainers": [100], "cpus": 8}),
    ]
    found = find(story(None, events=events, **series))
    assert found is not None
    return found, [one.text for one in found.evidence], [one.how for one in remedies_for(found, "keras")]


def test_what_a_pipeline_computes_in_native_code_is_named_by_its_calls() -> None:
    found, told, advised = pipeline(DECODES)
    assert found.headline == "Input starved: decoding and resizing keep 1.0 processors busy"
    assert told[1] == "map(load), train.py:3: DecodeJpeg, ReadFile, ResizeBilinear, one row after another"
    assert "7 rows at a time beside the training would make a step about 13 ms: 7.8 times as fast" in told
    assert advised[0].startswith("dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)\n")
    assert pipeline(DECODES | {"function": "<lambda>"})[2][0].startswith("dataset = dataset.map(prepare, num_")


def test_what_a_pipeline_does_already_is_not_advised() -> None:
    parallel = DECODES | {"parallel": True}
    _, told, advised = pipeline(parallel)
    assert (
        told[1].endswith("several rows at a time")
        and advised[0] == "dataset = dataset.prefetch(tf.data.AUTOTUNE)  # last"
    )
    advised = pipeline(parallel, ahead=True)[2]
    assert ".cache(" in advised[0] and not any("num_parallel_calls" in how or "prefetch" in how for how in advised)


def test_python_within_a_pipeline_is_not_advised_to_run_in_parallel() -> None:
    found, _, advised = pipeline(DECODES | {"does": ["python"], "operations": ["PyFunc"]})
    assert "PyDataset" in advised[0] and not any("num_parallel_calls" in how for how in advised)
    assert found.headline == "Input starved: preparing the data keeps 1.0 processors busy"


def test_a_disk_that_is_slow_is_told_whatever_is_computed() -> None:
    found, _, _ = pipeline(DECODES, cpu_s=0.05)
    assert "neither disk, network nor processor" in found.headline


def test_few_looks_claim_nothing_and_input_that_keeps_up_is_silent() -> None:
    assert stages(starved(SEEN["decode"], SEEN["decode"], *IDLE.values())) is None
    assert find(starved(*[SEEN["decode"]] * 8, ratio=0.2)) is None


def of(stage: str, workers: int = 0, cpus: int = 8) -> Stages:
    return Stages(stage, 5, 5, "", "", "", workers, 0, cpus)


@pytest.mark.parametrize(
    ("found", "workers", "times"),
    [
        (of("decode"), 4, 5.0),  # 80 ms of work beside 20 ms of training: four keep up
        (of("decode", cpus=3), 2, 2.5),  # two processors are left for it
        (of("sleep", cpus=2), 4, 5.0),  # what only waits needs no processor
        (of("decode", workers=2), 7, 3.5),  # two workers make a batch in 100 ms: each takes 200
    ],
)
def test_the_gain_follows_from_what_a_step_waits_and_computes(found: Stages, workers: int, times: float) -> None:
    gain = with_workers(0.1, 0.8, found, 0.2)
    assert gain is not None and (gain.workers, round(gain.times, 1)) == (workers, times)


def test_where_no_processor_is_left_no_worker_is_advised() -> None:
    assert with_workers(0.1, 0.98, of("decode", cpus=2), 1.0) is None
    assert with_workers(0.1, 0.8, of("decode", workers=7), 7.0) is None


def test_each_stage_has_its_remedy() -> None:
    recipes = CAUSES["input-starvation"].recipes
    assert {"read", "decode", "resize", "augment", "transfer", "workers"} <= {recipe.when for recipe in recipes}
