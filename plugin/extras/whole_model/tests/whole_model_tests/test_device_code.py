"""TVM writes the kernels; which argument goes where is read from the call that launches them."""

from __future__ import annotations

import pytest
import tvm
from tvm import te

from tunegate.errors import UnsupportedModelError
from tunegate_whole_model.persistent.device_code import device_code
from whole_model_tests.models import TARGET, whole


def test_a_kernel_has_its_launch_and_the_order_of_its_arguments() -> None:
    (ways,) = whole("chain", 128).ways.values()
    (code,) = ways["plain"].codes
    assert code.thread_count == 128
    assert sorted(code.order) == [0, 1, 2]
    assert len(code.parameters) == 3
    assert all("*" in each for each in code.parameters)
    assert not code.is_together
    assert ways["recorded"].codes[0].is_together


def test_a_nest_that_is_on_no_device_is_refused() -> None:
    x = te.placeholder((4,), name="x")
    plain = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0, name="y")])
    with pytest.raises((UnsupportedModelError, tvm.error.InternalError, RuntimeError)):
        device_code({"plain": plain}, TARGET)
