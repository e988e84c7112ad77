"""Long chains of element-wise operators cost linear time, and compute what they did."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax
from tvm.ir.expr import TensorLoad
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError
from tvm_ffi import structural_walk

from tests.compiler.importing.fused_module import fused_module
from tests.support.operator_models import outputs_of
from tests.support.small_onnx import model_of, typed
from tunegate.compiler.importing.chain_cuts import MOST_COPIES, MOST_READS, sizes_of_parameters
from tunegate.compiler.schedules import vector_functions
from tunegate.compiler.schedules.default_schedule import with_default_schedule

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
FUNCTIONS = [
    "Sigmoid",
    "Tanh",
    "Erf",
    "Exp",
    "Log",
    "SiLU",
    "Gelu",
    "Softplus",
    "Mish",
    "HardSwish",
    "Tan",
    "Atanh",
    "LeakyRelu",
    "Elu",
    "Shrink",
]
MIXED = ["Sigmoid", "Erf", "Relu", "SiLU", "Softplus", "Tanh", "HardSwish", "Exp", "Neg", "Gelu"]
SHAPE = 8, 64


def chain(operators: Sequence[str], length: int) -> onnx.ModelProto:
    """A product, and then the operators in turn."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["v0"])]
    for i in range(length):
        operator = operators[i % len(operators)]
        if operator == "SiLU":
            nodes.append(helper.make_node("Sigmoid", [f"v{i}"], [f"s{i}"]))
            nodes.append(helper.make_node("Mul", [f"v{i}", f"s{i}"], [f"v{i + 1}"]))
        else:
            nodes.append(helper.make_node(operator, [f"v{i}"], [f"v{i + 1}"]))
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    return model_of(nodes, {"x": SHAPE}, {f"v{length}": SHAPE}, {"w": weights}, opset=20)


def kernels(module: Any) -> dict[str, Any]:
    return {
        variable.name_hint: function
        for variable, function in module.functions.items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }


def reads_when_inlined(kernel: Any) -> int:
    """The reads in a kernel, all of whose blocks are written into each other that can be."""
    schedule = Schedule(tvm.IRModule({"main": kernel}))
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        with suppress(ScheduleError):
            schedule.compute_inline(block)
    loads: list[Any] = []
    structural_walk(schedule.mod["main"].body, [(TensorLoad, loads.append)])
    return len(loads)


@pytest.mark.parametrize("length", [1, 2, 3, 6, 16, 64])
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_no_expression_of_a_chain_grows_past_its_bound(
    operator: str, length: int, tmp_path: Path
) -> None:
    module = fused_module(chain([operator], length), tmp_path, TARGET)
    for kernel in kernels(module).values():
        assert reads_when_inlined(kernel) <= 2 * MOST_READS
        assert max(size.copies for size in sizes_of_parameters(kernel)) <= MOST_COPIES


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_one_function_is_one_kernel_with_its_product(operator: str, tmp_path: Path) -> None:
    assert len(kernels(fused_module(chain([operator], 1), tmp_path, TARGET))) == 1


def test_cheap_operators_are_never_cut(tmp_path: Path) -> None:
    module = fused_module(chain(["Neg", "Relu", "Abs"], 100), tmp_path, TARGET)
    assert [name for name in kernels(module) if "alone" in name] == []


@pytest.mark.parametrize(
    ("operators", "length"),
    [(["Sigmoid"], 30), (["Sin", "Tan"], 30), (["LeakyRelu"], 30), (MIXED, 300)],
)
def test_a_long_chain_is_built_and_gives_the_numbers_of_onnx_runtime(
    operators: list[str], length: int, tmp_path: Path
) -> None:
    vector_functions.vectorize_elementary_functions()
    model = chain(operators, length)
    module = fused_module(model, tmp_path, TARGET)
    with TARGET:
        scheduled = with_default_schedule(module, TARGET)
    machine = relax.VirtualMachine(relax.build(scheduled, target=TARGET), tvm.cpu())
    x = np.random.default_rng(1).standard_normal(SHAPE).astype("float32")
    found = machine["main"](tvm.runtime.tensor(x)).numpy()
    (wanted,) = outputs_of(model, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


# Running sums.


GPU = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})


def running_sum(length: int, dtype: int, exclusive: int, reverse: int) -> onnx.ModelProto:
    """A running sum along the second of three axes, between element-wise operators."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["y"]),
        helper.make_node("CumSum", ["y", "axis"], ["c"], exclusive=exclusive, reverse=reverse),
        helper.make_node("Add", ["c", "y"], ["z"]),
    ]
    image = typed(dtype, [2, length, 3])
    return model_of(nodes, {"x": image}, {"z": image}, {"axis": np.array(-2)}, opset=20)


@pytest.mark.parametrize(
    ("length", "dtype", "exclusive", "reverse", "kernels"),
    [
        (1, TensorProto.FLOAT, 0, 0, 0),
        (7, TensorProto.FLOAT, 0, 0, 3),
        (128, TensorProto.INT64, 1, 0, 8),
        (100, TensorProto.INT32, 0, 1, 7),
        (33, TensorProto.FLOAT, 1, 1, 7),
    ],
)
def test_a_running_sum_takes_a_kernel_for_each_doubling(
    length: int, dtype: int, exclusive: int, reverse: int, kernels: int, tmp_path: Path
) -> None:
    model = running_sum(length, dtype, exclusive, reverse)
    module = fused_module(model, tmp_path, GPU)
    names = [variable.name_hint for variable in module.functions]
    assert sum(name.startswith(("running_sum", "exclusive_sum")) for name in names) == kernels
    x = (3 * np.random.default_rng(0).standard_normal((2, length, 3))).astype(
        helper.tensor_dtype_to_np_dtype(dtype)
    )
    # No thread is bound yet, so a CPU computes the same kernels.
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), tvm.cpu())
    (expected,) = outputs_of(model, {"x": x})
    actual = machine["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
