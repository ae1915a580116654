"""What the operations of one step show, by operations as TensorFlow reports them: no TensorFlow is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holdfast.inside.tensorflow.numerics.forward_ops import ForwardOps, is_spread


class Tensor:
    count = 0

    def __init__(self, *shape: int) -> None:
        Tensor.count += 1
        self._id, self.shape = Tensor.count, shape


class Step:
    def __init__(self) -> None:
        self.ops = ForwardOps()

    def op(self, kind: str, *inputs: Tensor, shape: tuple[int, ...]) -> Tensor:
        made = Tensor(*shape)
        self.ops._on_op(kind.encode(), inputs, None, [made])
        return made

    def variable(self, *shape: int) -> Tensor:
        return self.op("ReadVariableOp", Tensor(), shape=shape)

    def dense(self, name: str, given: Tensor, units: int, activation: str = "") -> Tensor:
        layer: Any = SimpleNamespace(name=name)
        with self.ops.within(layer):
            kernel, bias = self.variable(given.shape[1], units), self.variable(units)
            made = self.op("MatMul", given, kernel, shape=(given.shape[0], units))
            made = self.op("BiasAdd", made, bias, shape=made.shape)
            return self.op(activation, made, shape=made.shape) if activation else made


def test_layers_with_nothing_between_are_found_whatever_made_them_follow() -> None:
    step = Step()
    hidden = step.dense("two", step.dense("one", Tensor(32, 8), 16), 16)
    assert step.ops.linear_layers(step.dense("three", hidden, 3, "Softmax")) == ["one", "two", "three"]


def test_an_activation_of_any_form_or_a_narrow_layer_makes_them_none() -> None:
    for activation, width in (("Relu", 16), ("Erf", 16), ("", 2)):
        step = Step()
        assert step.ops.linear_layers(step.dense("two", step.dense("one", Tensor(32, 8), width, activation), 3)) == []


def test_a_column_less_a_vector_is_found_where_one_side_is_the_output() -> None:
    step, targets = Step(), Tensor(32)
    output = step.dense("one", Tensor(32, 8), 1)
    step.op("SquaredDifference", output, targets, shape=(32, 32))
    assert step.ops.spread_over(output) == 32


def test_rows_that_are_compared_with_each_other_are_meant() -> None:
    step = Step()
    output = step.dense("one", Tensor(32, 8), 1)
    row = step.op("Squeeze", output, shape=(32,))
    step.op("Sub", output, row, shape=(32, 32))
    assert step.ops.spread_over(output) == 0
    assert not is_spread(((32, 1), (32, 1)), (32, 1))
