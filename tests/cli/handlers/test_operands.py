from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.cli.handlers.compare_models import (
    AgainstModel,
    Artifact,
    Artifacts,
    Model,
    understood,
)
from tunegate.errors import ConfigError


def test_files_are_models_and_a_prefix_says_what_runs_them() -> None:
    assert understood("a.onnx", "tvm:b.onnx") == AgainstModel(
        Model(Path("a.onnx")), Model(Path("b.onnx"), "tvm")
    )
    assert understood("onnxruntime:a.onnx", "a.onnx").base == Model(Path("a.onnx"), "onnxruntime")


def test_directories_are_artifacts(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert understood(str(one), str(other)) == Artifacts(one, other)
    assert understood(str(one), "b.onnx") == AgainstModel(Artifact(one), Model(Path("b.onnx")))


def test_an_artifact_comes_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Name it first"):
        understood("a.onnx", str(tmp_path))


@pytest.mark.parametrize("address", ["oci://a/b:1", "https://u:secret@h/m.onnx?k=v", "models:/a/1"])
def test_an_address_is_for_the_deploy_gate(address: str) -> None:
    with pytest.raises(ConfigError, match="tunegate deploy-gate") as caught:
        understood(address, "b.onnx")
    assert "secret" not in str(caught.value)
    assert "k=v" not in str(caught.value)
