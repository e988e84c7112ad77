"""A model that is opened whole has its kernels; shapes that depend on data are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
import tvm_ffi
from onnx import TensorProto, helper
from tvm import relax, te
from tvm.relax import TensorType

from tests.support.small_onnx import one_node_model, save
from tunegate.compiler.loader import WatchedKernels, slower_in_model
from tunegate.compiler.opening import OpenModel, open_model
from tunegate.compiler.runtime import machine_of
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.system.output.artifact_file import ArtifactTensor


def opened(model: onnx.ModelProto, place: Path) -> OpenModel:
    prepared = prepare(save(model, place / "m.onnx"), shapes={}, into=place / "p", path="m.onnx")
    target = tvm_target(TargetConfig(name="cpu", threads=1)).target
    return open_model(prepared, target, "m.onnx", layouts=("nhwc", "nchw"))


def test_its_kernels_are_found(tmp_path: Path) -> None:
    (function,) = opened(one_node_model("Relu"), tmp_path).functions
    assert (function.operator, function.weight) == ("relu", 1)


@pytest.mark.parametrize("follower", ["Neg n", "ScatterElements n z z", "GatherND n z"])
def test_a_shape_that_depends_on_data_is_refused(tmp_path: Path, follower: str) -> None:
    operator, *read = follower.split()
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node(operator, read, ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        [helper.make_tensor("z", TensorProto.INT64, [1, 2], [0, 0])],
    )
    opsets = [helper.make_opsetid("", 17)]
    with pytest.raises(UnsupportedModelError, match=r"operator NonZero .*depends on data"):
        opened(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path)


@pytest.mark.parametrize(
    ("op", "starts"), [("Relu", None), ("Slice", [0])], ids=["as given", "made so"]
)
def test_an_empty_result_is_refused_by_its_node(
    op: str, starts: list[int] | None, tmp_path: Path
) -> None:
    """A slice that ends before it begins, for instance."""
    extent = 0 if starts is None else 4
    weights = {} if starts is None else {"s": starts, "e": [9], "a": [1], "by": [-1]}
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *weights], ["y"], name="layer")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, extent])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            helper.make_tensor(name, TensorProto.INT64, [1], value)
            for name, value in weights.items()
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    with pytest.raises(UnsupportedModelError, match=rf'{op} \(node "layer"\) .*is empty'):
        opened(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path)


# Kernels are seen one by one, also those that a device would launch as one CUDA graph.

RUN_OR_CAPTURE = "vm.builtin.cuda_graph.run_or_capture"
KIND = TensorType((4,), "float32")
KERNELS = {"added", "doubled"}


def captured_module() -> Any:
    """A module as TVM's pass leaves it for a GPU: its kernels are in a function that is given to
    the runtime, to be captured."""
    builder = relax.BlockBuilder()
    given = relax.Var("given", KIND)
    with builder.function("captured", [given], private=True):
        with builder.dataflow():
            added = builder.emit_te(
                lambda a: te.compute((4,), lambda i: a[i] + 1.0), given, primfunc_name_hint="added"
            )
            doubled = builder.emit_te(
                lambda a: te.compute((4,), lambda i: a[i] * 2.0),
                added,
                primfunc_name_hint="doubled",
            )
            doubled = builder.emit_output(doubled)
        builder.emit_func_output(doubled)
    x = relax.Var("x", KIND)
    with builder.function("main", [x]):
        captured = builder.get().get_global_var("captured")
        arguments = relax.Tuple([captured, relax.Tuple([x]), relax.prim_value(0)])
        call = relax.op.call_builtin_with_ctx(RUN_OR_CAPTURE, arguments, ty_args=[KIND])
        builder.emit_func_output(builder.emit(call))
    return builder.get()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Path]:
    """A library whose kernels are captured; who captures it is told that he may not look."""

    def refuse(*_: object) -> None:
        message = "CUDA Runtime Error: cudaErrorStreamCaptureImplicit (906)"
        raise RuntimeError(message)

    before = tvm.get_global_func(RUN_OR_CAPTURE, allow_missing=True)
    tvm_ffi.register_global_func(RUN_OR_CAPTURE, refuse, override=True)
    file = tmp_path / "model.so"
    relax.build(captured_module(), target=tvm.target.Target("llvm")).export_library(str(file))
    yield file
    if before is None:
        tvm_ffi.registry.remove_global_func(RUN_OR_CAPTURE)
    else:
        tvm_ffi.register_global_func(RUN_OR_CAPTURE, before, override=True)


def test_kernels_of_a_graph_have_their_times_at_every_inference(library: Path) -> None:
    arguments = [tvm.runtime.tensor(np.ones(4, "float32"))]
    tasks = [{"function": name, "name": f"layer {name}"} for name in KERNELS]
    watched = WatchedKernels(library, tasks, tvm.cpu(), arguments)
    for _ in range(3):
        watched.infer()
    for found in watched.inferences_ms():
        assert found.keys() == {f"layer {name}" for name in KERNELS}
        assert all(milliseconds > 0 for milliseconds in found.values())


def test_schedules_are_tried_in_a_model_that_has_graphs(library: Path, tmp_path: Path) -> None:
    beside = tmp_path / "beside.so"
    beside.write_bytes(library.read_bytes())
    inputs = [ArtifactTensor("x", (4,), "float32")]
    told: list[str] = []
    slower_in_model(
        library, beside, inputs=inputs, kernels=KERNELS, kind="llvm", seed=1, running=told.append
    )
    assert set(told[::2]) == {*KERNELS}
    assert set(told[1::2]) == {""}


def test_who_runs_a_library_without_looking_captures_it_as_before(library: Path) -> None:
    arguments = [tvm.runtime.tensor(np.ones(4, "float32"))]
    WatchedKernels(library, [], tvm.cpu(), arguments).infer()
    with pytest.raises(RuntimeError, match="906"):
        machine_of(library, tvm.cpu())["main"](*arguments)
