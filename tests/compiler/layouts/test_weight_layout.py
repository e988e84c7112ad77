"""Constants are moved without a kernel, to what the compiler would have made of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from tests.compiler.layouts.test_layout import all_kinds_of_convolutions
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.layouts.layout import channels_last
from tunegate.compiler.layouts.packing import marked, with_moved_constants
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


def one_call(call: relax.Expr, inputs: tuple[relax.Var, ...] = ()) -> Any:
    builder = relax.BlockBuilder()
    with builder.function("main", list(inputs)):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(call))
        builder.emit_func_output(output)
    return builder.finalize()


def bound_values(module: Any) -> list[Any]:
    return [binding.value for block in module["main"].body.blocks for binding in block.bindings]


def calls(module: Any) -> Counter[str]:
    return Counter(v.op.name for v in bound_values(module) if isinstance(v, relax.Call))


def result(module: Any) -> np.ndarray:
    """The result of a function that returns a constant."""
    (value, *_) = [v for v in bound_values(module) if hasattr(v, "value")]
    return np.asarray(value.value.numpy())


@given(st.permutations(range(4)))
def test_a_transposed_constant_is_a_constant(axes: list[int]) -> None:
    weight = np.arange(2 * 3 * 4 * 5, dtype="float32").reshape(2, 3, 4, 5)
    moved = with_moved_constants(one_call(relax.op.permute_dims(relax.const(weight), axes)))
    assert not calls(moved)
    assert np.array_equal(result(moved), weight.transpose(axes))


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "int64", "bool"])
def test_one_move_after_the_other_is_one(kind: str) -> None:
    bias = relax.const((np.arange(6) % 2).astype(kind), kind)
    moves = relax.op.permute_dims(
        relax.op.expand_dims(relax.op.reshape(bias, (1, 6, 1)), 3), [0, 2, 3, 1]
    )
    moved = with_moved_constants(one_call(relax.op.squeeze(moves, [0])))
    assert not calls(moved)
    assert result(moved).shape == (1, 1, 6)
    assert result(moved).dtype == kind


def test_what_is_no_constant_is_moved_when_the_model_runs() -> None:
    image = relax.Var("x", relax.TensorType((2, 3), "float32"))
    moved = with_moved_constants(one_call(relax.op.permute_dims(image), (image,)))
    assert calls(moved) == {"relax.permute_dims": 1}


def test_a_kind_of_number_that_numpy_does_not_have_is_left_to_the_compiler() -> None:
    weight = relax.const(np.ones((2, 3)), "bfloat16")
    moved = with_moved_constants(one_call(relax.op.permute_dims(weight)))
    assert calls(moved) == {"relax.permute_dims": 1}


@pytest.mark.parametrize("last", [True, False])
def test_the_tasks_of_a_model_are_the_same(last: bool) -> None:
    """The convolutions include grouped, strided and transposed ones: the
    compiler folds what is left here."""
    module = from_onnx(all_kinds_of_convolutions())
    module = channels_last(module) if last else module
    assert tasks(with_moved_constants(module)) == tasks(module)


def tasks(module: Any) -> dict[str, int]:
    with TARGET:
        fused = relax.get_pipeline("zero")(module)
    return {f.workload.digest: f.weight for f in functions_of(marked(fused))}


def test_the_weights_of_a_model_are_the_same() -> None:
    module = channels_last(from_onnx(all_kinds_of_convolutions()))
    with TARGET:
        folded, moved = (
            relax.get_pipeline("zero")(m) for m in (module, with_moved_constants(module))
        )
    assert constants(moved) == constants(folded)


def constants(module: Any) -> list[tuple[tuple[int, ...], bytes]]:
    found = [
        argument.value.numpy()
        for value in bound_values(module)
        if isinstance(value, relax.Call) and len(value.args) > 1
        for argument in value.args[1].fields
        if hasattr(argument, "value")
    ]
    return [(value.shape, value.tobytes()) for value in found]
