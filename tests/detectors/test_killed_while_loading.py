"""Killed before the first step: while the data was loaded, the model was built or the first batch ran, by the stacks."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.detectors import find_endings
from holdfast.detectors.killed_while_loading import find
from holdfast.diagnosis.verdict import diagnose
from holdfast.vocabulary import Event, Window
from tests.story import GIB, START, kernel, story

MIB = float(1 << 20)
KILLED = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"
SITE = "/opt/venv/lib/python3.12/site-packages"
Frames = list[tuple[str, str, str]]
MAIN = ("train.py", "<module>", "main()")

LOADS: dict[str, Frames] = {
    "a table": [
        (f"{SITE}/pandas/io/parsers/c_parser_wrapper.py", "read", ""),
        (f"{SITE}/pandas/io/parsers/readers.py", "read_csv", ""),
        ("train.py", "main", 'x = pd.read_csv("all.csv")'),
        MAIN,
    ],
    "an array": [(f"{SITE}/numpy/lib/npyio.py", "load", ""), ("train.py", "main", 'x = np.load("x.npy")'), MAIN],
    "images into a list": [
        ("train.py", "load_all", "images.append(decode(number))"),
        ("train.py", "main", "images = load_all()"),
        MAIN,
    ],
    "arrays that fit() turns into tensors": [
        (f"{SITE}/keras/src/trainers/data_adapters/array_slicing.py", "convert_to_sliceable", ""),
        (f"{SITE}/keras/src/backend/tensorflow/trainer.py", "fit", ""),
        ("train.py", "main", "model.fit(x, y)"),
        MAIN,
    ],
    "images through transforms that are modules": [
        (f"{SITE}/torch/nn/functional.py", "interpolate", ""),
        (f"{SITE}/torchvision/transforms/transforms.py", "forward", ""),
        (f"{SITE}/torch/nn/modules/module.py", "_call_impl", ""),
        ("train.py", "read_folder", "x.append(transform(image))"),
        MAIN,
    ],
}
LOOK_ALIKES: dict[str, Frames] = {
    "a layer of many weights": [
        (f"{SITE}/torch/nn/init.py", "kaiming_uniform_", ""),
        (f"{SITE}/torch/nn/modules/linear.py", "__init__", ""),
        ("train.py", "__init__", "self.head = nn.Linear(65536, 65536)"),
        ("train.py", "main", "model = Net()"),
        MAIN,
    ],
    "a Keras layer of many weights": [
        (f"{SITE}/keras/src/backend/tensorflow/random.py", "uniform", ""),
        (f"{SITE}/keras/src/initializers/random_initializers.py", "__call__", ""),
        (f"{SITE}/keras/src/layers/core/embedding.py", "build", ""),
        ("train.py", "build", "keras.layers.Embedding(50_000_000, 512)"),
        MAIN,
    ],
    "weights by hand": [("train.py", "main", "weights = torch.randn(WIDTH, WIDTH)"), MAIN],
    "a large pretrained model": [
        (f"{SITE}/safetensors/torch.py", "load_file", ""),
        (f"{SITE}/transformers/modeling_utils.py", "from_pretrained", ""),
        ("train.py", "main", 'model = AutoModel.from_pretrained("large")'),
        MAIN,
    ],
    "the first batch": [
        (f"{SITE}/torch/nn/modules/conv.py", "forward", ""),
        (f"{SITE}/torch/nn/modules/module.py", "_call_impl", ""),
        ("train.py", "main", "loss = criterion(model(images), labels)"),
        MAIN,
    ],
    "the first backward": [
        (f"{SITE}/torch/autograd/graph.py", "_engine_run_backward", ""),
        (f"{SITE}/torch/_tensor.py", "backward", ""),
        ("train.py", "main", "loss.backward()"),
        MAIN,
    ],
    "the first batch, by hand": [
        ("train.py", "predict", "hidden = torch.relu(rows @ w1)"),
        ("train.py", "<module>", "loss = predict(images).pow(2).mean()"),
    ],
    "the first batch, with Holdfast's own code around it": [
        (f"{SITE}/tensorflow/python/eager/execute.py", "quick_execute", ""),
        ("/home/me/holdfast/src/holdfast/inside/keras/micro_batches.py", "gradient", "rows = pieces[-1][1]"),
        ("/home/me/holdfast/src/holdfast/inside/keras/step.py", "train_function", "if prepare(iterator, data)"),
        (f"{SITE}/keras/src/backend/tensorflow/trainer.py", "fit", ""),
        ("/home/me/holdfast/src/holdfast/inside/keras/resume.py", "fit", "return raw(self, data)"),
        ("train.py", "<module>", "model.fit(x, y)"),
    ],
    "the first batch, in a tf.function": [
        (f"{SITE}/tensorflow/python/eager/execute.py", "quick_execute", ""),
        (f"{SITE}/tensorflow/python/eager/polymorphic_function/polymorphic_function.py", "__call__", ""),
        ("train.py", "<module>", "losses.append(float(step(a, b)))"),
    ],
    "imports": [("<frozen importlib._bootstrap>", "_load", ""), (f"{SITE}/pandas/__init__.py", "<module>", ""), MAIN],
}


def stack(frames: Frames, held: float, at: float = START + 59.5) -> Event:
    told = [{"file": file, "line": 9, "function": function, "code": code} for file, function, code in frames]
    return Event("startup.stack", at, {"pid": 100, "held_bytes": held, "base_bytes": 200 * MIB, "frames": told})


def killed(*events: Event, framework: str = "torch", **series: Any) -> Window:
    loaded = Event("framework.loaded", START, {"name": framework})
    limit = {"cgroup__memory_limit_bytes": [GIB]}
    return story(137, 9, events=[loaded, *events, kernel(KILLED)], **(limit | series))


def answer(window: Window) -> str:
    cause = diagnose(window, find_endings(window)).cause
    return cause.id if cause else ""


@pytest.mark.parametrize("what", LOADS)
def test_a_data_set_that_does_not_fit_is_named(what: str) -> None:
    window = killed(stack(LOADS[what], 500 * MIB), stack(LOADS[what], 900 * MIB))
    assert answer(window) == "dataset-in-memory"
    found = find(window)
    assert found is not None and found.confidence >= 0.85
    assert found.evidence[0].text == "memory rose by 700 MiB before the first step"
    assert found.evidence[1].text.startswith("700 MiB of it while the script was at train.py:9 in ")


@pytest.mark.parametrize("what", LOOK_ALIKES)
def test_what_merely_looks_like_it_is_not(what: str) -> None:
    window = killed(stack(LOOK_ALIKES[what], 500 * MIB), stack(LOOK_ALIKES[what], 900 * MIB))
    assert answer(window) == "container-memory-limit"


def test_a_little_data_and_a_first_batch_that_is_too_large_is_not_the_data() -> None:
    batch = stack(LOOK_ALIKES["the first batch"], 900 * MIB)
    assert answer(killed(stack(LOADS["an array"], 450 * MIB), batch)) == "container-memory-limit"
    begun = Event("train.begun", START + 58, {"by": "loader"})
    assert answer(killed(stack(LOADS["an array"], 450 * MIB, START + 50), begun)) == "container-memory-limit"


def test_a_shuffle_buffer_that_is_filled_before_the_first_batch_is_no_data_set_loaded_whole() -> None:
    loading, small = stack(LOADS["an array"], 900 * MIB), {"what": "shuffle", "elements": 10, "element_bytes": 1 << 20}
    assert find(killed(loading, Event("data.kept", START + 58, small))) is not None
    large = {**small, "elements": 20_000}
    assert find(killed(loading, Event("data.kept", START + 58, large))) is None


def test_a_jump_after_the_last_stack_is_not_put_on_the_data() -> None:
    assert find(killed(stack(LOADS["an array"], 400 * MIB, START + 40))) is None
    assert find(killed(stack(LOADS["an array"], 400 * MIB))) is not None, "it was there to the end"


def reading(path: str, size: float, held: float = 900 * MIB) -> Event:
    about = {"pid": 100, "held_bytes": held, "base_bytes": 200 * MIB, "files": [{"path": path, "bytes": size}]}
    return Event("startup.files", START + 59.5, about)


def test_one_long_read_that_answers_nothing_is_told_by_its_file() -> None:
    window = killed(reading("/data/images.npy", 3 * GIB))
    assert answer(window) == "dataset-in-memory"
    found = find(window)
    assert found is not None and found.evidence[1].text == "it was reading /data/images.npy (3 GiB)"
    assert answer(killed(reading("/models/pytorch_model.bin", 3 * GIB))) == "container-memory-limit"
    assert answer(killed(reading("/data/labels.csv", 20 * MIB))) == "container-memory-limit"


def test_words_that_fit_data_and_much_else_make_it_likely_no_more() -> None:
    found = find(
        killed(stack([("train.py", "build", "rows.append(vector)"), ("train.py", "<module>", "build()")], 900 * MIB))
    )
    assert found is not None and 0.5 < found.confidence < 0.8


def test_code_that_says_nothing_of_itself_makes_it_likely_no_more() -> None:
    found = find(killed(stack([("train.py", "main", "z = prepare(17)"), MAIN], 900 * MIB)))
    assert found is not None and 0.5 < found.confidence < 0.8


def test_after_a_step_or_where_steps_are_not_seen_nothing_is_claimed() -> None:
    loading = stack(LOADS["an array"], 900 * MIB)
    assert find(killed(loading, train__steps_count=[1.0])) is None
    assert find(killed(loading, framework="jax")) is None
    assert find(story(1, None, events=[Event("framework.loaded", START, {"name": "torch"}), loading])) is None


def test_what_a_run_does_after_it_went_on_from_a_checkpoint_is_not_its_loading() -> None:
    restored = Event("checkpoint.restored", START + 50, {"number": 1, "step": 12})
    collects = stack(LOADS["arrays that fit() turns into tensors"], 900 * MIB)
    assert answer(killed(collects)) == "dataset-in-memory"
    assert answer(killed(restored, collects)) == "container-memory-limit"


def test_holdfasts_own_frames_are_not_the_scripts() -> None:
    frames = [("/opt/holdfast/inside/tensorflow/step.py", "_next_internal", "return pull(self)"), *LOADS["an array"]]
    found = find(killed(stack(frames, 500 * MIB), stack(frames, 900 * MIB)))
    assert found is not None and "train.py:9 in main" in found.evidence[1].text


def test_an_array_that_tensorflow_copies_is_said_to_be_held_twice() -> None:
    slices: Frames = [
        (f"{SITE}/tensorflow/python/framework/constant_op.py", "convert_to_eager_tensor", ""),
        (f"{SITE}/tensorflow/python/data/ops/dataset_ops.py", "from_tensor_slices", ""),
        ("train.py", "main", "data = tf.data.Dataset.from_tensor_slices((x, y))"),
        MAIN,
    ]
    window = killed(stack(LOADS["an array"], 500 * MIB), stack(slices, 900 * MIB), framework="tensorflow")
    found = find(window)
    assert found is not None
    assert "400 MiB of it while TensorFlow copied arrays given to it whole" in found.evidence[2].text
    cause = diagnose(window, find_endings(window)).cause
    assert cause is not None and "PyDataset" in cause.remedies[0].how
    once = find(killed(stack(LOADS["an array"], 500 * MIB), stack(LOADS["an array"], 900 * MIB)))
    assert once is not None and not any("held twice" in item.text for item in once.evidence)


def test_what_was_typed_at_a_prompt_is_the_scripts_own_code() -> None:
    """A cell of a notebook, or standard input: no file, and no library either."""
    for place in ("<ipython-input-4-1a2b>", "<stdin>"):
        typed = [(place, "<module>", "rows = [decode(file) for file in files]")]
        found = find(killed(stack(typed, 500 * MIB), stack(typed, 900 * MIB)))
        assert found is not None and f"{place}:9 in <module>" in found.evidence[1].text


def test_the_verdict_has_the_lines_that_stream_the_very_file() -> None:
    """By the files that were open, also where a stack says more of the rest; without one, by the script's own line."""
    files = [{"path": "/data/train.npy", "bytes": 2 * GIB}, {"path": "/data/vocabulary.npy", "bytes": 17 * MIB}]
    held = {"pid": 100, "held_bytes": 900 * MIB, "base_bytes": 200 * MIB}
    reading = Event("startup.files", START + 59.4, {**held, "files": files})
    for window, file, framework in (
        (
            killed(stack(LOADS["an array"], 500 * MIB), reading, stack(LOADS["an array"], 900 * MIB)),
            "/data/train.npy",
            "torch",
        ),
        (
            killed(stack(LOADS["a table"], 500 * MIB), stack(LOADS["a table"], 900 * MIB), framework="keras"),
            "all.csv",
            "keras",
        ),
    ):
        cause = diagnose(window, find_endings(window)).cause
        assert cause is not None and cause.id == "dataset-in-memory"
        assert f'holdfast.data.open(\n    "{file}"' in cause.remedies[0].how
        assert (".torch()" if framework == "torch" else ".tensorflow()") in cause.remedies[0].how
    nameless = killed(stack(LOADS["images into a list"], 500 * MIB), stack(LOADS["images into a list"], 900 * MIB))
    cause = diagnose(nameless, find_endings(nameless)).cause
    assert cause is not None and not any("holdfast.data" in one.how for one in cause.remedies)
