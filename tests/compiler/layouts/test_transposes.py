from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tunegate.compiler.layouts.layout import without_inverse_transposes

SHAPE = (1, 3, 4, 5)
LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
OF_A_CHANNEL = relax.const(np.arange(3, dtype="float32").reshape(1, 1, 1, 3))
OF_A_CHANNEL_TOO = relax.const(np.arange(3, dtype="float32"))
HALF = relax.const(np.full((1,), 0.5, "float32"))

Body = Callable[[Any], Any]


def made(body: Body) -> Any:
    """A function of an image with its channels first."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(builder.normalize(body(x)))
        builder.emit_func_output(result)
    return relax.transform.Normalize()(builder.get())


def transposes(module: Any) -> int:
    return str(module).count("R.permute_dims(")


def outputs(module: Any) -> Any:
    x = np.random.default_rng(1).standard_normal(SHAPE).astype("float32")
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(x)).numpy()


def between(middle: Body) -> Body:
    return lambda x: op.permute_dims(middle(op.permute_dims(x, LAST)), FIRST)


@pytest.mark.parametrize(
    "middle",
    [
        lambda x: op.clip(x, 0, 6),
        lambda x: op.multiply(HALF, x),
        lambda x: op.minimum(op.maximum(x, relax.const(0.0)), relax.const(0.5)),
        lambda x: op.multiply(x, op.add(x, HALF)),
        lambda x: op.sigmoid(op.add(x, OF_A_CHANNEL)),
        lambda x: op.nn.relu(op.subtract(OF_A_CHANNEL_TOO, x)),
    ],
)
def test_two_that_undo_each_other_go_and_the_numbers_stay(middle: Body) -> None:
    module = made(between(middle))
    changed = without_inverse_transposes(module)
    assert (transposes(module), transposes(changed)) == (2, 0)
    np.testing.assert_array_equal(outputs(changed), outputs(module))


@pytest.mark.parametrize(
    "body",
    [
        lambda x: op.clip(op.permute_dims(x, LAST), 0, 6),
        between(lambda x: op.nn.softmax(x, axis=-1)),
        between(lambda x: op.add(x, op.sum(x, axis=[3], keepdims=True))),
        lambda x: op.permute_dims(op.clip(op.permute_dims(x, LAST), 0, 6), LAST),
    ],
    ids=["never undone", "along an axis", "a sum of channels", "another one"],
)
def test_what_does_not_become_less_stays_as_it_is(body: Body) -> None:
    module = made(body)
    assert without_inverse_transposes(module) is module


def test_who_else_reads_a_transposed_value_still_does() -> None:
    def body(x: Any) -> Any:
        last = op.permute_dims(x, LAST)
        clipped = op.permute_dims(op.clip(last, 0, 6), FIRST)
        return op.add(op.reshape(clipped, (60,)), op.reshape(last, (60,)))

    module = made(body)
    changed = without_inverse_transposes(module)
    assert transposes(changed) == 1
    np.testing.assert_array_equal(outputs(changed), outputs(module))
