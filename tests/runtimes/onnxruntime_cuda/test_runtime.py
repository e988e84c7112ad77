from __future__ import annotations

from pathlib import Path

import onnx

from tests.support.small_onnx import matmul_model, save
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate.runtimes.onnxruntime_cuda.runtime import RUNTIME, missing_provider

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")


def test_it_is_for_cuda_and_says_what_is_missing() -> None:
    assert RUNTIME.unsupported(CPU) == "is for CUDA devices"
    assert RUNTIME.unsupported(GPU) == missing_provider()


def test_shapes_are_fixed_in_what_it_saves(tmp_path: Path) -> None:
    file = save(matmul_model(rows="n"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={"x": (4, 16)}, into=tmp_path / "into", path="m.onnx")
    for name, variant in RUNTIME.variants(GPU).items():
        directory = tmp_path / f"artifact{name}"
        directory.mkdir()
        saved = onnx.load(directory / RUNTIME.save(prepared, directory, variant))
        shape = saved.graph.input[0].type.tensor_type.shape
        assert [each.dim_value for each in shape.dim] == [4, 16]
        types = {each.data_type for each in saved.graph.initializer}
        half = onnx.TensorProto.FLOAT16
        assert (half in types) == (name == "f16")
