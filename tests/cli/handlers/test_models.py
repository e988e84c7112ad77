"""The configuration that a comparison makes of the one of its repository."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tunegate.cli.handlers.compare_models import comparison_config
from tunegate.errors import ConfigError
from tunegate.settings import Settings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose input has an open batch, in a repository that says its size."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("x", "y")
    )
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    file = tmp_path / "models" / "m.onnx"
    file.parent.mkdir()
    onnx.save(helper.make_model(graph), file)
    (tmp_path / "tunegate.yaml").write_text("models: [{path: models/*.onnx, dims: {batch: 4}}]\n")
    return file


def test_the_sizes_of_the_repositorys_configuration_hold(model: Path) -> None:
    settings = Settings(repository=model.parents[1])
    assert comparison_config(settings, "m.onnx", {}, [model]).models[0].inputs == {"x": (4, 3)}
    other = model.parents[2] / "old.onnx"
    found = comparison_config(settings, "m.onnx", {}, [other, model])
    assert found.models[0].inputs == {"x": (4, 3)}
    given = comparison_config(settings, "m.onnx", {"x": (2, 3)}, [model])
    assert given.models[0].inputs == {"x": (2, 3)}


def test_a_size_that_nobody_gave_names_the_option(model: Path) -> None:
    (model.parents[1] / "tunegate.yaml").write_text("models: [{path: others/*.onnx}]\n")
    with pytest.raises(ConfigError, match=r"m\.onnx: the shape of x is open.* --shape x=1,3,224"):
        comparison_config(Settings(repository=model.parents[1]), "m.onnx", {}, [model])
