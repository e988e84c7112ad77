from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.models.external_data import lay_out
from tests.support.small_onnx import matmul_model
from tunegate.models import preparation
from tunegate.models.compilable import file_digests
from tunegate.models.preparation import prepare

OVER_TWO_GIB = 2**31 + 2**28


def test_the_weights_beside_a_large_model_are_in_its_digests(tmp_path: Path) -> None:
    file = tmp_path / "optimized.onnx"
    file.write_bytes(b"graph")
    (tmp_path / "optimized.data").write_bytes(b"weights")
    before = file_digests(file)
    (tmp_path / "optimized.data").write_bytes(b"changed")
    assert set(before) == {"optimized.onnx", "optimized.data"}
    assert file_digests(file) != before


def test_a_model_of_over_two_gib_is_prepared_with_its_weights_in_a_file(tmp_path: Path) -> None:
    """The numbers never pass through one message, which ends at two GiB; a hole stays a hole."""
    there = tmp_path / "there"
    there.mkdir()
    model = matmul_model(seed=3)
    small = model.graph.initializer[0]
    right = onnx.numpy_helper.to_array(small)
    small_bytes = small.raw_data
    lay_out(small, "w.bin").external_data.add(key="offset", value=str(OVER_TWO_GIB))
    huge = onnx.TensorProto(name="huge", data_type=1, dims=[OVER_TWO_GIB // 4])
    model.graph.initializer.append(lay_out(huge, "w.bin"))
    huge_length = model.graph.initializer[1].external_data.add(key="length")
    huge_length.value = str(OVER_TWO_GIB)
    (there / "m.onnx").write_bytes(model.SerializeToString())
    with (there / "w.bin").open("wb") as file:
        file.seek(OVER_TWO_GIB)
        file.write(small_bytes)

    found = prepare(there / "m.onnx", shapes={}, into=tmp_path / "p", path="m.onnx")
    assert found.weights is not None
    assert found.weights.stat().st_blocks * 512 < 2**24
    assert found.unfixable == (
        "m.onnx: it has 2.3 GiB of weights, and only ONNX Runtime takes models of 2 GiB and more "
        "here."
    )
    copy = tmp_path / "artifact" / "model.onnx"
    copy.parent.mkdir()
    found.copy_to(copy)
    x = np.ones(found.inputs[0].shape, np.float32)
    (ran,) = onnxruntime.InferenceSession(copy).run(None, {"x": x})
    np.testing.assert_allclose(ran, x @ right, rtol=1e-4)


def test_several_data_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "PROTOBUF_LIMIT_BYTES", 100)
    model = matmul_model(seed=3)
    weight, bias = model.graph.initializer[0], onnx.TensorProto(name="b", data_type=1, dims=[16])
    right = onnx.numpy_helper.to_array(weight)
    (tmp_path / "w.bin").write_bytes(b"head" + weight.raw_data)
    (tmp_path / "b.bin").write_bytes(np.full(16, 3, np.float32).tobytes())
    lay_out(weight, "w.bin").external_data.add(key="offset", value="4")
    model.graph.initializer.append(lay_out(bias, "b.bin"))
    model.graph.node[0].output[0] = "product"
    model.graph.node.append(onnx.helper.make_node("Add", ["product", "b"], ["y"]))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())

    found = prepare(tmp_path / "m.onnx", shapes={}, into=tmp_path / "p", path="m.onnx")
    assert sorted(file.name for file in (tmp_path / "p").iterdir()) == ["model.data", "model.onnx"]
    x = np.ones((16, 16), np.float32)
    (ran,) = onnxruntime.InferenceSession(found.original).run(None, {"x": x})
    np.testing.assert_allclose(ran, x @ right + 3, rtol=1e-4)
