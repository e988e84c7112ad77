"""Models as every build begins with them: saved, and prepared."""

from pathlib import Path

import onnx

from tests.support.small_onnx import save
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel


def prepared_model(
    model: onnx.ModelProto, directory: Path, **shapes: tuple[int, ...]
) -> PreparedModel:
    file = save(model, directory / "m.onnx")
    return prepare(file, shapes=shapes, into=directory / "p", path="m.onnx")
