"""The body of a network as an ONNX model, and files that are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from research.experience.network.body_model import (
    MAX_BODY_BYTES,
    BodyError,
    body_bytes,
    body_numbers,
    body_of,
)
from research.experience.network.network_card import HIDDEN, WIDTH
from tunegate.tune.prior import NEST_COLUMNS

_RNG = np.random.default_rng(0)
NUMBERS = {
    name: _RNG.normal(size=shape).astype(np.float32)
    for name, shape in {
        "first_weight": (NEST_COLUMNS, HIDDEN),
        "first_bias": (HIDDEN,),
        "second_weight": (HIDDEN, WIDTH),
        "second_bias": (WIDTH,),
    }.items()
}
GOOD = body_bytes(NUMBERS)


def changed(change: Callable[[onnx.ModelProto], object]) -> bytes:
    model = onnx.ModelProto.FromString(GOOD)
    change(model)
    return bytes(model.SerializeToString())


def with_constant(values: np.ndarray) -> Callable[[onnx.ModelProto], object]:
    """The first bias in place of its own."""
    tensor = numpy_helper.from_array(values, "first_bias")
    return lambda model: next(
        each for each in model.graph.initializer if each.name == "first_bias"
    ).CopyFrom(tensor)


def outside(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.external_data.add(key="location", value="/etc/passwd")
    tensor.data_location = onnx.TensorProto.EXTERNAL


def test_it_is_a_valid_model_that_computes_two_layers() -> None:
    onnx.checker.check_model(onnx.ModelProto.FromString(GOOD), full_check=True)
    columns = _RNG.normal(size=(5, NEST_COLUMNS)).astype(np.float32)
    hidden = np.maximum(columns @ NUMBERS["first_weight"] + NUMBERS["first_bias"], 0)
    expected = np.tanh(hidden @ NUMBERS["second_weight"] + NUMBERS["second_bias"])
    assert body_of(GOOD)(columns) == pytest.approx(expected, abs=1e-4)


def test_its_numbers_come_back() -> None:
    found = body_numbers(GOOD)
    assert all(np.array_equal(found[name], values) for name, values in NUMBERS.items())


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (b"no model", "no ONNX model"),
        (b"", "operators"),
        (GOOD + b"\0" * MAX_BODY_BYTES, "are read at most"),
        (changed(lambda m: m.graph.node.add(op_type="Loop")), "operators"),
        (changed(lambda m: m.graph.initializer.pop()), "other names"),
        (changed(with_constant(np.zeros(3, np.float32))), "first_bias"),
        (changed(with_constant(np.zeros(HIDDEN, np.float64))), "first_bias"),
        (changed(with_constant(np.full(HIDDEN, np.nan, np.float32))), "not finite"),
        (changed(outside), "no block"),
    ],
)
def test_a_file_that_is_no_body_says_why_in_one_line(model: bytes, said: str) -> None:
    with pytest.raises(BodyError, match=said) as caught:
        body_of(model)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=80), st.integers(0, len(GOOD) - 1))
def test_damage_is_told_and_never_another_fault(damage: bytes, place: int) -> None:
    try:
        found = body_numbers(GOOD[:place] + damage + GOOD[place + len(damage) :])
    except BodyError:
        return
    assert sorted(found) == sorted(NUMBERS)
