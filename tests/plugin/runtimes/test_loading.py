"""What a measuring process runs, and what it does not need for that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.small_onnx import conv_model, save
from tunegate.runtimes.loading import Inference, load_onnx


def outputs(run: Inference) -> list[Any]:
    return cast("list[Any]", run())


@pytest.mark.parametrize(
    "kind",
    [
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.FLOAT16,
        TensorProto.INT64,
        TensorProto.UINT8,
        TensorProto.BOOL,
    ],
    ids=TensorProto.DataType.Name,
)
def test_inputs_of_every_usual_type_are_made_up(tmp_path: Path, kind: int) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in ("x", "y")]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opset = [helper.make_opsetid("", 17)]
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), file)
    (made,) = outputs(load_onnx(file, 1, seed=1))
    assert made.dtype == helper.tensor_dtype_to_np_dtype(kind)
    assert made.shape == (2, 3)


def test_the_seed_decides_the_inputs(tmp_path: Path) -> None:
    file = save(conv_model(channels=4, out=8, size=6), tmp_path / "m.onnx")
    first, again, other = (outputs(load_onnx(file, 1, seed))[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).all()


def test_one_inference_gives_what_the_model_gives(tmp_path: Path) -> None:
    run = load_onnx(save(conv_model(channels=4, out=8, size=6), tmp_path / "m.onnx"), 1, seed=1)
    (output,) = outputs(run)
    assert output.shape[:2] == (1, 8)


def test_a_launch_under_onnxruntime_starts_without_what_is_slow_to_import() -> None:
    program = "import sys, tunegate.runtimes.bench_worker; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    slow = {"onnx", "scipy", "tvm", "tvm_ffi", "matplotlib", "boto3", "git"}
    assert not slow & set(done.stdout.split())
