import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.support.declared_commands import core_commands
from tunegate.cli import option
from tunegate.cli.commands.gating import CompareOptions
from tunegate.cli.option import Argument, Option
from tunegate.cli.parse import Parsed, fields_of, fill_struct, parse, suggestion
from tunegate.cli.shared_options import BudgetOptions, Common, Options
from tunegate.config import Config, ModelConfig
from tunegate.errors import ConfigError
from tunegate.settings import apply_overrides

REQUIRED = {
    "completion": ["bash"],
    "compare": ["a", "b"],
    "confirm": ["a", "b"],
    "cache why-miss": ["layer"],
    "cache promote": ["--from-zone", "dev/me"],
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
    config = apply_overrides(Config(models=(ModelConfig(path="*"),)), by)
    assert (config.budget.minutes, config.gate.margin_percent) == (3.0, 5.0)
    assert config.budget.trials == 50
    assert config.cache.zone == "dev/me"
    assert config.budget.usd is None


def test_a_margin_that_is_given_is_also_that_of_a_release() -> None:
    settings = parsed("run", "--since-release", "--margin-percent", "2").options.settings
    config = apply_overrides(Config(models=(ModelConfig(path="*"),)), settings.overrides)
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
        ["cache"],
        ["run", "--minutes", "5m"],
        ["run", "--minutes", "-1"],
        ["run", "--trials", "1.5"],
        ["run", "--margin-percent", "0"],
        ["plan", "--shards", "0"],
        ["run", "--cache-mode", "maybe"],
        ["compare", "a.onnx", "b.onnx", "c.onnx"],
        ["run", "--no-such-option"],
        ["run", "--base", "v1", "--since-release"],
        ["run", "--min", "3"],
        ["run", "--shards", "2"],
        ["gate", "--since-release"],
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
        (["run", "--margin", "3"], "Did you mean --margin-percent?"),
        (["run", "--heads=HEAD"], "Did you mean --head?"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(line: list[str], meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(line)
    assert meant in str(caught.value)


@given(some.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_a_number_is_read_as_it_is_written(number: float) -> None:
    assert option.not_negative(repr(number)) == number
    if number > 0:
        assert option.positive(repr(number)) == number


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (option.positive, "0", "not a number above zero"),
        (option.positive, "inf", "not a number above zero"),
        (option.not_negative, "-1", "not zero or a number above it"),
        (option.percentage, "0", "not a number above zero"),
        (option.percentage, "101", "more than 100 percent"),
        (option.not_negative, "3m", "without a unit"),
        (option.whole_number, "-1", "not a whole number"),
        (option.whole_number, "1.0", "not a whole number"),
        (option.count, "0", "not 1 or more"),
        (option.seed, str(2**64), "not a number of 64 bits"),
        (option.hours, "-1", "not a number of hours"),
        (option.date, "21.11.2026", "not a date such as 2026-11-21"),
        (option.shape, "x", "not INPUT=1,3,224,224"),
        (option.shape, "x=1,-1", "not INPUT=1,3,224,224"),
        (option.shape, "=1", "not INPUT=1,3,224,224"),
    ],
)
def test_what_is_no_value_is_quoted(read: Callable[[str], object], text: str, said: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert str(caught.value).startswith(f'"{text}" is ')
    assert said in str(caught.value)


@pytest.mark.parametrize("read", [option.whole_number, option.count, option.seed])
def test_a_number_of_thousands_of_digits_is_refused_in_words(
    read: Callable[[str], object],
) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is a number of more than 40 digits"):
        read("9" * 5000)
    with pytest.raises(argparse.ArgumentTypeError, match="is not INPUT=1,3,224,224"):
        option.shape(f"x={'9' * 5000}")


def test_the_name_of_an_input_may_have_an_equals_sign() -> None:
    assert option.shape("a=b=1,0") == ("a=b", (1, 0))


class SomeOptions(Options, frozen=True, kw_only=True):
    """Options of a command that there is not."""

    budget: BudgetOptions = BudgetOptions()
    place: Annotated[Path, Argument("where", "DIR", Path)]
    dry_run: Annotated[bool, Option("only count")] = False
    grace_hours: Annotated[float, Option("how long", "N", float)] = 24.0
    mode: Annotated[str, Option("how", choices=("a", "b"))] = ""


FIELDS = {field.name: field for field in fields_of(SomeOptions)}


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("place", ()),
        ("dry_run", ("--dry-run",)),
        ("as_json", ("--json",)),
        ("quiet", ("-q", "--quiet")),
        ("budget.minutes", ("--minutes",)),
    ],
)
def test_an_option_has_the_name_of_its_field_or_its_own(name: str, flags: tuple[str, ...]) -> None:
    assert FIELDS[name].flags == flags


def test_help_shows_the_default_that_the_struct_has() -> None:
    assert FIELDS["grace_hours"].help == "how long; default: 24"
    assert FIELDS["out"].help.endswith("; default: .tunegate")
    assert FIELDS["dry_run"].help == "only count"
    assert FIELDS["mode"].metavar == "a|b"


def test_what_is_not_given_has_its_default_in_every_group() -> None:
    options = fill_struct(SomeOptions, {"place": Path("p"), "budget.minutes": 3.0, "quiet": True})
    assert options == SomeOptions(
        place=Path("p"),
        budget=BudgetOptions(given={"budget.minutes": 3.0}),
        common=Common(quiet=True),
    )


def test_one_of_two_options_that_exclude_each_other_names_the_other() -> None:
    assert FIELDS["verbose"].excluded_with == FIELDS["quiet"].excluded_with == "quiet"


FLAGS = ("--margin-percent", "--minutes", "--head", "--cache-url", "--cache-mode")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--margin", " Did you mean --margin-percent?"),
        ("--cache", " Did you mean --cache-mode or --cache-url?"),
        ("head", " Did you mean --head?"),
        ("--frobnicate", ""),
        ("-", ""),
        ("", ""),
    ],
)
def test_the_nearest_words_are_named_and_nothing_where_none_is_near(word: str, meant: str) -> None:
    assert suggestion(word, FLAGS) == meant
