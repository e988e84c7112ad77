from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.test_export_models import CHANGE, CONFIG, NoValues, Versions
from tests.models.test_export_models import OPEN as BOTH_OPEN
from tests.support.measured_cells import make_changes
from tunegate.artifacts.changes import ModelInput
from tunegate.config import Config, ModelConfig
from tunegate.models.export_models import ExportedModels, export_models, same_as_base, static_sizes
from tunegate.tools import ModelSource

STATIC = ModelInput("x", (2, 8))
OPEN = ModelInput("x", (None, 8), ("batch", ""))


@pytest.mark.parametrize(
    ("base", "head", "sizes"),
    [
        (STATIC, OPEN, {"x": (2, 8)}),
        (STATIC, ModelInput("x", (), is_ranked=False), {"x": (2, 8)}),
        (STATIC, STATIC, {}),
        (OPEN, OPEN, {}),
        (OPEN, STATIC, {}),
        (STATIC, ModelInput("z", (None, 8)), {}),
        (STATIC, ModelInput("x", (None, 9)), {}),
        (STATIC, ModelInput("x", (None, None, 8)), {}),
        (ModelInput("x", (), is_ranked=False), OPEN, {}),
    ],
)
def test_one_side_says_the_sizes_where_it_is_static_and_the_other_is_not(
    base: ModelInput, head: ModelInput, sizes: dict[str, tuple[int, ...]]
) -> None:
    assert static_sizes((base,), (head,)) == sizes


def test_a_head_is_run_at_the_shapes_of_its_base_where_it_takes_them() -> None:
    open_too = ModelInput("x", (None, 8), ("tiny", ""))
    shapes = {"x": (64, 8), "gone": (1,)}
    assert same_as_base(shapes, (open_too,)) == {"x": (64, 8)}
    assert same_as_base(shapes, (STATIC, ModelInput("new", (None,)))) == {}
    assert same_as_base(shapes, (ModelInput("x", (None, 9)),)) == {}


def read_by(
    read_inputs: Callable[[Path], tuple[ModelInput, ...]],
    config: Config,
    workdir: Path,
    before: Config | None = None,
) -> ExportedModels:
    """The changes whose sides have other inputs."""
    source = ModelSource(
        config=config,
        config_before=before,
        repository=Versions(),
        candidates={},
        workdir=workdir,
        read_inputs=read_inputs,
        read_values=NoValues().rules,
    )
    return export_models(make_changes(), source)


def test_a_symbol_that_takes_the_name_of_a_smaller_one_makes_no_head_smaller(
    tmp_path: Path,
) -> None:
    inputs = {
        side: (ModelInput("x", (None, 8), (name, "")),)
        for side, name in (("b", "seq"), ("h", "batch"))
    }
    config = Config(models=(ModelConfig(path="**"),), dims={"seq": 64, "batch": 1})
    found = read_by(lambda f: inputs[f.read_text()], config, tmp_path)
    shapes = [model.shapes for model in found.files.values()]
    assert shapes == [{"x": (64, 8)}, {"x": (64, 8)}]
    assert found.resized == {(CHANGE.path, "head"): {"x": (64, 8)}}


def test_a_base_that_does_not_take_the_shapes_has_no_file(tmp_path: Path) -> None:
    sizes = {"b": 2, "h": 1}
    found = read_by(lambda f: (ModelInput("x", (sizes[f.read_text()], 8)),), CONFIG, tmp_path)
    assert [side for _, side in found.files] == ["head"]
    assert "axis 0 is 2 in the model, not 1" in found.unreadable[CHANGE.path, "base"]


def test_what_is_said_of_an_input_that_only_the_head_has_is_not_of_its_base(
    tmp_path: Path,
) -> None:
    entry = ModelConfig(path="**", inputs={"x": (4, 8), "y": (4,)})
    inputs = {"b": BOTH_OPEN[:1], "h": BOTH_OPEN}
    found = read_by(lambda f: inputs[f.read_text()], Config(models=(entry,)), tmp_path)
    shapes = [model.shapes for model in found.files.values()]
    assert shapes == [{"x": (4, 8)}, {"x": (4, 8), "y": (4,)}]


def test_an_input_that_is_gone_with_its_line_has_the_size_that_the_base_gave_it(
    tmp_path: Path,
) -> None:
    before, after = (
        Config(models=(ModelConfig(path="**", inputs=given),))
        for given in ({"x": (4, 8), "y": (4,)}, {"x": (4, 8)})
    )
    inputs = {"b": BOTH_OPEN, "h": BOTH_OPEN[:1]}
    found = read_by(lambda f: inputs[f.read_text()], after, tmp_path, before)
    shapes = {side: model.shapes for (_, side), model in found.files.items()}
    assert shapes == {"base": {"x": (4, 8), "y": (4,)}, "head": {"x": (4, 8)}}


def test_a_line_that_names_no_input_is_still_an_error_of_the_head(tmp_path: Path) -> None:
    config = Config(models=(ModelConfig(path="**", inputs={"x": (4, 8), "y": (4,)}),))
    inputs = {"b": BOTH_OPEN, "h": BOTH_OPEN[:1]}
    found = read_by(lambda f: inputs[f.read_text()], config, tmp_path, config)
    assert "inputs.y: the model has no such input" in found.unreadable[CHANGE.path, "head"]


def test_an_input_under_another_name_makes_no_head_smaller(tmp_path: Path) -> None:
    static, opened = ModelInput("x", (4, 8)), ModelInput("z", (None, 8))
    config = Config(models=(ModelConfig(path="**", inputs={"z": (1, 8)}),))
    inputs = {"b": (static,), "h": (opened,)}
    found = read_by(lambda f: inputs[f.read_text()], config, tmp_path)
    assert found.files[CHANGE.path, "head"].shapes == {"z": (4, 8)}
