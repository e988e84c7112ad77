from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.config import CacheConfig
from tunegate.errors import ConfigError
from tunegate.review.config_file import load_config, parse_config

OLD = "models: [{path: m.onnx}]\ncache: {prior: p.json, share-experience: true, zone: rel}\n"


def test_a_configuration_with_keys_of_an_earlier_version_is_read_and_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tunegate.yaml"
    path.write_text(OLD)
    assert load_config(path).cache == CacheConfig(zone="rel")
    assert load_config(path).cache == CacheConfig(zone="rel")
    assert capsys.readouterr().err.splitlines() == [
        f"tunegate: warning: {path}: cache.prior no longer does anything. Remove it.",
        f"tunegate: warning: {path}: cache.share-experience no longer does anything. Remove it.",
    ]


def test_a_configuration_of_another_revision_is_read_without_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert parse_config(OLD, "tunegate.yaml at abc").cache == CacheConfig(zone="rel")
    assert capsys.readouterr().err == ""


def test_a_retired_key_elsewhere_is_unknown_as_ever() -> None:
    with pytest.raises(ConfigError, match="prior"):
        parse_config("models: [{path: m.onnx, prior: p.json}]\n", "tunegate.yaml")
