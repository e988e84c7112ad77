"""A model is taken in with all its numbers, and with no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.models.external_data import lay_out, model_with_data
from tunegate.errors import ModelError
from tunegate.models.preparation import with_data

NUMBERS = np.arange(4, dtype=np.float32)


def branch_with(tensor: TensorProto) -> bytes:
    branch = helper.make_graph([], "branch", [], [], [tensor])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    content: bytes = helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString()
    return content


def laid_out(**where: str) -> TensorProto:
    tensor = lay_out(numpy_helper.from_array(NUMBERS, "w"), "w.bin")
    for key, value in where.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def test_data_of_a_branch_are_taken_in(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"head" + NUMBERS.tobytes() + b"tail")
    proto, had_files = with_data(branch_with(laid_out(offset="4", length="16")), tmp_path)
    assert had_files
    for attribute in proto.graph.node[0].attribute:
        (tensor,) = attribute.g.initializer
        assert numpy_helper.to_array(tensor).tolist() == NUMBERS.tolist()
        assert not tensor.external_data


def test_without_a_length_the_data_go_to_the_end_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(NUMBERS.tobytes())
    proto, _ = with_data(branch_with(laid_out()), tmp_path)
    assert proto.graph.node[0].attribute[0].g.initializer[0].raw_data == NUMBERS.tobytes()


def test_a_model_without_data_files_stays_as_it_is(tmp_path: Path) -> None:
    model = branch_with(numpy_helper.from_array(NUMBERS, "w"))
    proto, had_files = with_data(model, tmp_path)
    assert (proto, had_files) == (onnx.ModelProto.FromString(model), False)


def test_a_file_that_ends_too_soon_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(NUMBERS.tobytes())
    with pytest.raises(ModelError, match=r"^its data file 'w.bin' ends before tensor 'w' does$"):
        with_data(branch_with(laid_out(offset="4", length="16")), tmp_path)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^its data file 'w.bin' is missing"):
        with_data(branch_with(laid_out()), tmp_path)


def test_a_link_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(NUMBERS.tobytes())
    (tmp_path / "w.bin").symlink_to("real")
    with pytest.raises(ModelError, match=r"^its data file 'w.bin' is missing"):
        with_data(model_with_data("w.bin"), tmp_path)


def test_a_tensor_that_names_no_file_is_an_error(tmp_path: Path) -> None:
    tensor = TensorProto(name="v", data_location=TensorProto.EXTERNAL)
    branch = helper.make_graph([], "branch", [], [], [tensor, laid_out()])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch)
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    (tmp_path / "w.bin").write_bytes(NUMBERS.tobytes())
    with pytest.raises(
        ModelError, match=r"^its tensor 'v' has its numbers in a data file, and names none"
    ):
        with_data(model.SerializeToString(), tmp_path)
