from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.cli.command_tree import core_commands
from tunegate.cli.commands.cache import PushOptions
from tunegate.cli.commands.comparing import CompareOptions
from tunegate.cli.parse import Parsed, parse
from tunegate.config import Config, ModelConfig
from tunegate.errors import ConfigError
from tunegate.settings import overridden

REQUIRED = {
    "completion": ["bash"],
    "compare": ["a", "b"],
    "confirm": ["a", "b"],
    "cache why-miss": ["layer"],
    "cache promote": ["--from-zone", "dev/me"],
    "cache export": ["d"],
    "cache import": ["d"],
    "cache pull": ["d"],
}


def parsed(*line: str) -> Parsed:
    return parse(line)


@pytest.mark.parametrize("command", [command.name for command in core_commands()])
def test_every_command_takes_what_the_contract_promises(command: str) -> None:
    line = ["--json", "--config", "c.yaml", "--out", "o", "-v", "--repository", "r"]
    options = parsed(*command.split(), *line, *REQUIRED.get(command, [])).options
    settings = options.settings
    assert settings.as_json
    assert options.common.verbose
    places = (settings.config, settings.out, settings.repository)
    assert places == (Path("c.yaml"), Path("o"), Path("r"))


def test_options_of_a_run_lie_over_the_file() -> None:
    limits = ("--minutes", "3", "--trials", "50")
    asked = parsed("run", *limits, "--margin-percent", "5", "--zone", "dev/me")
    by = asked.options.settings.overrides
    config = overridden(Config(models=(ModelConfig(path="*"),)), by)
    assert (config.budget.minutes, config.gate.margin_percent) == (3.0, 5.0)
    assert config.budget.trials == 50
    assert config.cache.zone == "dev/me"
    assert config.budget.usd is None


def test_a_margin_that_is_given_is_also_that_of_a_release() -> None:
    settings = parsed("run", "--since-release", "--margin-percent", "2").options.settings
    config = overridden(Config(models=(ModelConfig(path="*"),)), settings.overrides)
    assert settings.since_release
    assert config.gate.release_margin_percent == 2


def test_compare_takes_two_files_and_shapes() -> None:
    line = ("compare", "a.onnx", "b.onnx", "--shape", "x=1,3,224,224", "--shape", "y=1")
    options = parsed(*line).options
    assert isinstance(options, CompareOptions)
    assert (options.base, options.head) == ("a.onnx", "b.onnx")
    assert options.shapes == (("x", (1, 3, 224, 224)), ("y", (1,)))


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["fly"],
        ["cache"],
        ["run", "--minutes", "5m"],
        ["run", "--minutes", "-1"],
        ["run", "--minutes", "nan"],
        ["run", "--trials", "1.5"],
        ["run", "--margin-percent", "0"],
        ["plan", "--shards", "0"],
        ["run", "--cache-mode", "maybe"],
        ["compare", "a.onnx", "b.onnx", "c.onnx"],
        ["compare", "a.onnx", "b.onnx", "--shape", "x"],
        ["run", "--no-such-option"],
        ["run", "--base", "v1", "--since-release"],
        ["run", "--min", "3"],
        ["run", "--shards", "2"],
        ["tune", "--minutes", "3"],
        ["gate", "--since-release"],
        ["gate", "--trials", "3"],
        ["cache", "promote"],
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(line: list[str]) -> None:
    with pytest.raises(ConfigError, match="See: tunegate"):
        parse(line)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (["cach", "stats"], "Did you mean cache?"),
        (["cache", "stat"], "Did you mean stats?"),
        (["gat"], "Did you mean gate?"),
        (["--verson"], "Did you mean --version?"),
        (["run", "--margin", "3"], "Did you mean --margin-percent?"),
        (["run", "--heads=HEAD"], "Did you mean --head?"),
    ],
)
def test_a_word_that_does_not_exist_is_answered_with_the_nearest(
    line: list[str], meant: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(line)
    assert meant in str(caught.value)


def test_an_argument_that_is_left_out_has_its_default() -> None:
    options = parsed("cache", "push").options
    assert isinstance(options, PushOptions)
    assert options.directory is None


def test_an_option_after_two_dashes_asks_for_no_help() -> None:
    assert parsed("cache", "why-miss", "--", "-h").command.name == "cache why-miss"
