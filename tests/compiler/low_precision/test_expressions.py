from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import tirx

from tunegate.compiler.low_precision.expressions import rewritten
from tunegate.errors import UnsupportedModelError


def load(buffer: Any, indices: list[Any]) -> Any:
    return buffer[tuple(indices)]


def test_variables_and_loads_are_replaced_in_every_kind_of_expression() -> None:
    x, y = tirx.Var("x", "int64"), tirx.Var("y", "int64")
    buffer = tirx.decl_buffer((8,), "float32")
    number = tirx.Cast("float32", x)
    before = tirx.Select(
        tirx.Not(x < 3), tirx.exp(buffer[x] * number), tirx.max(buffer[x + 1], tirx.const(0.0))
    )
    number = tirx.Cast("float32", y)
    after = tirx.Select(
        tirx.Not(y < 3), tirx.exp(buffer[y] * number), tirx.max(buffer[y + 1], tirx.const(0.0))
    )
    tvm.ir.assert_structural_equal(rewritten(before, {x: y}, load), after)


def test_a_load_may_become_another_value() -> None:
    x = tirx.Var("x", "int64")
    buffer = tirx.decl_buffer((8,), "float32")
    seven = tirx.const(7.0, "float32")
    found = rewritten(buffer[x] + buffer[x], {}, lambda *_: seven)
    tvm.ir.assert_structural_equal(found, tirx.Add(seven, seven))


def test_an_expression_of_another_kind_is_refused() -> None:
    x = tirx.Var("x", "int64")
    with pytest.raises(UnsupportedModelError, match="Ramp"):
        rewritten(tirx.Ramp(x, 1, 4), {}, load)
