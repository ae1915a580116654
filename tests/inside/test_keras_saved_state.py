"""What a model consists of is written and put back bit for bit, whatever a read of it gives on which device."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from holdfast.inside.keras.late_values import layers_of_variables
from holdfast.inside.keras.on_tensorflow import TensorFlowState
from holdfast.inside.keras.saved_state import Taken, callbacks_state, put_callbacks, put_variables

numpy: Any = pytest.importorskip("numpy")
ml_dtypes: Any = pytest.importorskip("ml_dtypes")

BFLOAT16 = ml_dtypes.bfloat16
VALUES: dict[str, Any] = {
    "float32 matrix": numpy.arange(6, dtype="float32").reshape(2, 3) / 3,
    "float32 scalar": numpy.float32(0.1),
    "int64 scalar": numpy.int64(1 << 40),
    "bool scalar": numpy.bool_(True),
    "bfloat16 vector": numpy.array([1.5, -2.0], BFLOAT16),
    "bfloat16 scalar": numpy.array([1.5], BFLOAT16)[0],
    "empty": numpy.zeros((0, 3), "float32"),
    "string": b"text\0",
    "strings": numpy.array([b"a", b"bc\0"], dtype=object),
}


class Tensor:
    """As TensorFlow's: 0-d ones give a scalar, which has no `numpy()` of its own."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.copied = 0

    def numpy(self) -> Any:
        self.copied += 1
        return self._value.copy() if hasattr(self._value, "copy") else self._value


class Held:
    def __init__(self, value: Any, device: str) -> None:
        self.device = f"/job:localhost/replica:0/task:0/device:{device}:0"
        self.value = value
        self.reads: list[Tensor] = []

    def read_value(self) -> Tensor:
        self.reads.append(Tensor(self.value))
        return self.reads[-1]

    def assign(self, value: Any) -> None:
        self.value = value


def _variables(device: str) -> list[Any]:
    return [
        SimpleNamespace(
            path=name,
            name=name,
            shape=numpy.shape(value),
            dtype="string" if "string" in name else str(value.dtype),
            _value=Held(value, device),
        )
        for name, value in VALUES.items()
    ]


def _as_dtype(name: str) -> Any:
    known = {"bfloat16": numpy.dtype(BFLOAT16), "string": numpy.dtype(object)}
    return SimpleNamespace(as_numpy_dtype=known.get(name) or numpy.dtype(name))


@pytest.mark.parametrize("device", ["CPU", "GPU"])
def test_all_kinds_of_values_come_back_as_they_were(tmp_path: Path, device: str) -> None:
    variables = _variables(device)
    state = TensorFlowState(SimpleNamespace(as_dtype=_as_dtype))
    taken = Taken(variables, state)
    path = str(tmp_path / "variables.npz")
    for variable in variables:
        variable._value.assign(None)  # trained on
    taken.write(path)
    put_variables(variables, taken.index, path, state)
    for variable, wanted in zip(variables, VALUES.values(), strict=True):
        found = variable._value.value
        assert found.shape == numpy.shape(wanted), variable.name
        if variable.dtype == "string":
            assert found.tolist() == (wanted if isinstance(wanted, bytes) else wanted.tolist())
        else:
            assert (found.dtype, found.tobytes()) == (wanted.dtype, wanted.tobytes()), variable.name


@pytest.mark.parametrize(("device", "copies"), [("CPU", 0), ("GPU", 1)])
def test_only_off_the_cpu_is_it_copied_at_once(device: str, copies: int) -> None:
    """A read that is held would need a card's memory twice; on the CPU TensorFlow copies at the next write."""
    variables = _variables(device)
    Taken(variables, TensorFlowState(SimpleNamespace(as_dtype=_as_dtype)))
    assert {tensor.copied for variable in variables for tensor in variable._value.reads} == {copies}


def test_the_values_of_a_loop_of_ones_own_keep_their_types() -> None:
    from holdfast.inside.keep import _copied

    assert "numpy" in sys.modules
    for value in (numpy.float32(0.1), numpy.str_("best"), VALUES["bfloat16 scalar"], 3, 0.5, "x", None):
        assert type(_copied(value)) is type(value) and _copied(value) == value
    array = VALUES["bfloat16 vector"]
    copy = _copied(array)
    assert copy is not array and copy.dtype == array.dtype and copy.tobytes() == array.tobytes()


PROGRAM = """
import json, sys
from types import SimpleNamespace
import keras, numpy, tensorflow as tf
from holdfast.inside.keras.late_values import layers_of_variables
from holdfast.inside.keras.on_tensorflow import TensorFlowState
from holdfast.inside.keras.saved_state import Taken, callbacks_state, put_callbacks, put_variables
from holdfast.inside.tensorflow.budget import limit_allocators
from holdfast.inside.tensorflow.memory_forecast import ResidentForecast
limit_allocators(SimpleNamespace(settings={"policy": "protect", "rescue": {"k": 2}}))  # freed memory goes back
numbers = numpy.arange(32 << 20, dtype="float32").reshape(4096, -1)
variables = [keras.Variable(numbers, dtype=dtype) for dtype in ("float32", "bfloat16")]
wanted = [tf.reduce_sum(tf.cast(variable._value, tf.float64)).numpy() for variable in variables]
state = TensorFlowState(tf)
taken = Taken(variables, state)
writing = ResidentForecast(tf).measure(lambda: taken.write(sys.argv[1]))
index = taken.index
del taken, numbers
for variable in variables:
    variable._value.assign(tf.zeros_like(variable._value))
reading = ResidentForecast(tf).measure(lambda: put_variables(variables, index, sys.argv[1], state))
found = [tf.reduce_sum(tf.cast(variable._value, tf.float64)).numpy() for variable in variables]
print(json.dumps({"writing": writing, "reading": reading, "same": found == wanted}))
"""


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow")
@pytest.mark.timeout(180)
def test_saving_and_putting_back_take_a_fraction_of_one_variable(tmp_path: Path) -> None:
    """Of 128 MiB: in a container that is full a second copy would be the end of the run."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "variables.npz")]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=170, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["same"]
    assert max(found["writing"], found["reading"]) < 72 << 20, found


def test_a_log_that_has_its_header_gets_no_second_one(tmp_path: Path) -> None:
    """CSVLogger looks whether the file has one before its state is put back."""
    keras: Any = pytest.importorskip("keras")
    begun, again = (keras.callbacks.CSVLogger(str(tmp_path / "log.csv"), append=True) for _ in range(2))
    begun.on_train_begin()
    state = callbacks_state([begun])
    begun.on_train_end()
    (tmp_path / "log.csv").write_text("epoch,loss\n")
    again.on_train_begin()
    put_callbacks([again], state)
    assert again.append_header is False
    again.on_train_end()


def test_what_a_callbacks_class_holds_is_put_back_in_place() -> None:
    class Rates:
        read: ClassVar[list[float]] = []
        most = 0

        def saw(self, rate: float) -> None:
            self.read.append(rate)
            Rates.most += 1

    one, held = Rates(), Rates.read
    one.saw(0.1)
    saved = callbacks_state([one])
    one.saw(0.2)
    put_callbacks([Rates()], saved)
    assert Rates.read is held and (held, Rates.most) == ([0.1], 1)


def test_a_model_that_trains_nothing_has_no_layers_of_variables() -> None:
    assert layers_of_variables([]) == []
