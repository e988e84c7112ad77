"""The source of each effective setting."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tunegate.cli.handlers.doctor_checks import Setting, sources
from tunegate.review.config_file import load_config

TEXT = """
models:
  - path: a.onnx
  - {path: b.onnx, inputs: {x: [1, 2]}}
gate: {seconds: 60}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tunegate.yaml"
    path.write_text(TEXT)
    return path


def settings_of(path: Path) -> dict[str, Setting]:
    config = load_config(path)
    return {setting.key: setting for setting in sources(path, config, config)}


def test_what_is_written_comes_from_the_file(path: Path) -> None:
    found = settings_of(path)
    assert found["models.1.path"] == Setting("models.1.path", '"b.onnx"', "file")
    assert found["models.1.inputs.x"] == Setting("models.1.inputs.x", "[1,2]", "file")
    assert found["gate.seconds"] == Setting("gate.seconds", "60.0", "file")


def test_what_is_not_written_is_a_default(path: Path) -> None:
    found = settings_of(path)
    assert found["gate.margin-percent"].source == "default"
    assert found["targets.0.name"] == Setting("targets.0.name", '"cpu"', "default")
    assert found["cache.region"] == Setting("cache.region", "null", "default")


def test_what_an_argument_changed_comes_from_it(path: Path) -> None:
    config = load_config(path)
    gate = msgspec.structs.replace(config.gate, seconds=5.0)
    found = sources(path, config, msgspec.structs.replace(config, gate=gate))
    changed = [setting for setting in found if setting.source == "argument"]
    assert changed == [Setting("gate.seconds", "5.0", "argument")]


def test_every_setting_is_said_once(path: Path) -> None:
    config = load_config(path)
    keys = [setting.key for setting in sources(path, config, config)]
    assert len(keys) == len(set(keys))
    assert {key.partition(".")[0] for key in keys} == {
        "models",
        "dims",
        "targets",
        "cache",
        "budget",
        "gate",
        "executor",
        "watch",
    }


def test_a_file_that_went_away_leaves_defaults(path: Path) -> None:
    config = load_config(path)
    path.unlink()
    assert {setting.source for setting in sources(path, config, config)} == {"default"}
