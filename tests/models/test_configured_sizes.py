from __future__ import annotations

from pathlib import Path

from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import Workspace
from tunegate.cli.handlers.doctor_checks import shape_report
from tunegate.config import Config, ModelConfig, ProfileConfig
from tunegate.models.finder import find_models


def test_every_profile_and_every_mistake_is_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    save(matmul_model(rows="batch"), workspace.root / "models" / "m.onnx")
    profiles = {"one": ProfileConfig(dims={"batch": 1}), "open": ProfileConfig()}
    config = Config(models=(ModelConfig(path="models/*", profiles=profiles),), dims={"batsh": 2})
    found = shape_report(find_models(workspace.root, config), config)
    assert [(each.model, each.size) for each in found.sizes] == [
        ("models/m.onnx@one", 1),
        ("models/m.onnx@open", None),
    ]
    assert [check.detail.partition(":")[0] for check in found.checks] == [
        "dims.batsh",
        "models/m.onnx@open",
    ]
    assert not any(check.ok for check in found.checks)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write("models/m.onnx", "nonsense")
    config = Config(models=(ModelConfig(path="**"),))
    broken, shapes = shape_report(find_models(workspace.root, config), config).checks
    assert (broken.name, broken.ok) == ("models", False)
    assert broken.detail == "models/m.onnx: not a readable ONNX file. Export it again."
    assert (shapes.name, shapes.ok) == ("shapes", True)
