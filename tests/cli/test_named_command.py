from __future__ import annotations

import pytest

from tunegate.cli.command_tree import CACHE_GROUP
from tunegate.cli.parse import named_command
from tunegate.errors import ConfigError


def test_the_first_words_name_the_command_and_the_rest_is_its() -> None:
    found, rest = named_command(["cache", "gc", "--dry-run"])
    assert (found.name, list(rest)) == ("cache gc", ["--dry-run"])


@pytest.mark.parametrize("line", [["cache"], ["cache", "--help"]])
def test_a_group_alone_is_itself(line: list[str]) -> None:
    found, _ = named_command(line)
    assert found is CACHE_GROUP


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "a command is missing"),
        (["hlep"], 'no command "hlep". Did you mean help?'),
        (["rum"], 'no command "rum". Did you mean run?'),
        (["help"], 'no command "help"'),
        (["cache", "gx"], "See: tunegate cache --help"),
        (["--versoin"], 'no option "--versoin". Did you mean --version?'),
    ],
)
def test_what_names_none_is_a_usage_error(line: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        named_command(line)
    assert said in str(caught.value)
