from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.arguments import parse
from tunegate.config import Config, ModelConfig
from tunegate.errors import ConfigError
from tunegate.settings import overridden

COMMANDS = ["init", "doctor", "demo", "run", "detect", "plan", "tune", "gate"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_what_the_contract_promises(command: str) -> None:
    line = [command, "--json", "--config", "c.yaml", "--out", "o", "-v", "--repository", "r"]
    settings = parse(line).settings
    assert settings.as_json
    assert (settings.config, settings.out, settings.repository) == (
        Path("c.yaml"),
        Path("o"),
        Path("r"),
    )


def test_options_of_a_run_lie_over_the_file() -> None:
    asked = parse(["run", "--minutes", "3", "--margin-percent", "5", "--zone", "dev/me"])
    config = overridden(Config(models=(ModelConfig(path="*"),)), asked.settings.overrides)
    assert (config.budget.minutes, config.gate.margin_percent, config.cache.zone) == (
        3.0,
        5.0,
        "dev/me",
    )
    assert config.budget.usd is None


def test_a_margin_that_is_given_is_also_that_of_a_release() -> None:
    asked = parse(["run", "--since-release", "--margin-percent", "2"])
    config = overridden(Config(models=(ModelConfig(path="*"),)), asked.settings.overrides)
    assert asked.settings.since_release
    assert config.gate.release_margin_percent == 2


def test_compare_takes_two_files_and_shapes() -> None:
    asked = parse(["compare", "a.onnx", "b.onnx", "--shape", "x=1,3,224,224"])
    assert asked.compared == ("a.onnx", "b.onnx")
    assert asked.shapes == {"x": (1, 3, 224, 224)}


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["fly"],
        ["run", "--minutes", "5m"],
        ["run", "--minutes", "-1"],
        ["run", "--minutes", "nan"],
        ["run", "--trials", "1.5"],
        ["run", "--margin-percent", "0"],
        ["plan", "--shards", "0"],
        ["run", "--cache-mode", "maybe"],
        ["compare", "a.onnx"],
        ["compare", "a.onnx", "b.onnx", "--shape", "x"],
        ["run", "--no-such-option"],
        ["run", "--base", "v1", "--since-release"],
        ["run", "--min", "3"],
        ["run", "--shards", "2"],
        ["tune", "--minutes", "3"],
        ["gate", "--since-release"],
        ["gate", "--trials", "3"],
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(line: list[str]) -> None:
    with pytest.raises(ConfigError, match="See: tunegate"):
        parse(line)
