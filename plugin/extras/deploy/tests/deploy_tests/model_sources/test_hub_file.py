"""Tests that need no hub; pipelines/test_deploy_gate.py has one, by its real client."""

from __future__ import annotations

import pytest

from tunegate.errors import ConfigError
from tunegate_deploy.model_sources import hub_file
from tunegate_deploy.model_sources.hub_file import HubFile, model_among
from tunegate_deploy.model_sources.source_settings import SourceSettings


def test_a_client_that_is_missing_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_file, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'tunegate-deploy\[hub\]'"):
        HubFile("hf://acme/asr@v1.2", SourceSettings())


def test_the_only_model_is_meant_or_one_with_a_usual_name() -> None:
    assert model_among(["README.md", "a/b.onnx"], "hf://x/y") == "a/b.onnx"
    assert model_among(["q.onnx", "onnx/model.onnx"], "hf://x/y") == "onnx/model.onnx"
    with pytest.raises(ConfigError, match=r"2 ONNX files \(a\.onnx, b\.onnx\)"):
        model_among(["b.onnx", "a.onnx"], "hf://x/y")
    with pytest.raises(ConfigError, match="0 ONNX files"):
        model_among(["model.safetensors"], "hf://x/y")
