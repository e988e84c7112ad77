"""Models converted to float16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.small_onnx import conv_model, one_node_model, save
from tunegate.errors import NotOfferedError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.model_precision import save_float16
from tunegate.models.reference.session import ReferenceSession


def prepared(model: onnx.ModelProto, root: Path) -> PreparedModel:
    file = save(model, root / "m.onnx")
    return prepare(file, shapes={}, into=root / "into", path="m.onnx")


def test_weights_are_halves_and_what_goes_in_and_out_is_as_before(tmp_path: Path) -> None:
    model = prepared(conv_model(), tmp_path)
    save_float16(model, tmp_path / "half.onnx")
    rng = np.random.default_rng(1)
    feed = {each.name: rng.random(each.shape, np.float32) for each in model.inputs}
    (wanted,) = ReferenceSession(model.original).run(feed)
    (found,) = ReferenceSession(tmp_path / "half.onnx").run(feed)
    assert found.dtype == np.float32
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert 0 < error < 0.01


def test_a_model_without_weights_is_not_offered(tmp_path: Path) -> None:
    with pytest.raises(NotOfferedError, match="no weights in float32"):
        save_float16(prepared(one_node_model("Relu"), tmp_path), tmp_path / "half.onnx")
