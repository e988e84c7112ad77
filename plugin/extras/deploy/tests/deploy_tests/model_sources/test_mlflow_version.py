"""Tests that need no server; pipelines/test_deploy_gate.py has a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.errors import ConfigError
from tunegate_deploy.model_sources import mlflow_version
from tunegate_deploy.model_sources.local_path import LocalPath
from tunegate_deploy.model_sources.mlflow_version import MlflowVersion
from tunegate_deploy.model_sources.source_settings import SourceSettings

SETTINGS = SourceSettings()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_version, "find_spec", lambda name: name)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.com")


def test_a_client_that_is_missing_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mlflow_version, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'tunegate-deploy\[mlflow\]'"):
        MlflowVersion("models:/asr@live", SETTINGS)


@pytest.mark.parametrize("server", ["", "mlruns", "file:///tmp/mlruns", "sqlite:///mlflow.db"])
def test_only_a_server_is_asked_and_no_file_of_the_checkout(
    server: str, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    with pytest.raises(ConfigError, match="Set MLFLOW_TRACKING_URI"):
        MlflowVersion("models:/asr@live", SETTINGS)


def test_only_an_alias_is_moved_and_to_a_version_of_its_model(installed: None) -> None:
    alias, version = (MlflowVersion(f"models:/asr{end}", SETTINGS) for end in ("@live", "/2"))
    alias.require_movable_to(version)
    with pytest.raises(ConfigError, match="moves an alias"):
        version.require_movable_to(alias)
    for other in (MlflowVersion("models:/tts/2", SETTINGS), LocalPath(Path("m"))):
        with pytest.raises(ConfigError, match="a version of asr"):
            alias.require_movable_to(other)
