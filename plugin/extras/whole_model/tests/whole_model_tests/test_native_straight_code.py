"""A lowered model is read as kernels in order, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tunegate.errors import UnsupportedModelError
from tunegate_whole_model.native.straight_code import StraightCode


def _read(made: Any, size: int) -> Any:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([size], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(made(x)))
        builder.emit_func_output(output)
    passes = [
        relax.transform.LegalizeOps(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
    ]
    module = tvm.transform.Sequential(passes)(builder.finalize())
    kernels = {v for v, f in module.functions.items() if isinstance(f, tvm.tirx.PrimFunc)}
    return StraightCode(module["main"], (["x"], ["y"]), 1, kernels).program()


def test_a_model_that_calls_anything_but_kernels_is_refused() -> None:
    kind = relax.TensorType([4], "float32")
    with pytest.raises(UnsupportedModelError, match="kernels only, not elsewhere"):
        _read(lambda x: relax.call_dps_packed("elsewhere", [x], kind), 4)


def test_equal_weights_are_kept_once() -> None:
    weights = [relax.const(np.full(1000, 3.0, np.float32)) for _ in range(3)]

    def summed(x: Any) -> Any:
        for each in weights:
            x = relax.op.add(x, each)
        return x

    program = _read(summed, 1000)
    assert len(program.weights) == 4000
    assert [call.symbol for call in program.calls] == ["__tvm_ffi_add"] * 3
    assert [call.buffers[-1].at for call in program.calls] == [0, 4032, 8064]
