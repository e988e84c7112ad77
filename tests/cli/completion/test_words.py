from __future__ import annotations

from collections.abc import Callable

import pytest

from tunegate.cli.command_tree import all_commands
from tunegate.cli.completion import bash, fish, zsh
from tunegate.cli.completion.words import ValueKind, offers
from tunegate.cli.parse import fields_of


def test_an_option_takes_the_same_kind_of_value_after_every_command() -> None:
    """The completion of bash has one rule for an option of all commands."""
    kinds: dict[str, set[ValueKind | None]] = {}
    for offer in offers():
        for flag in offer.flags:
            for name in flag.names:
                kinds.setdefault(name, set()).add(flag.kind)
    assert {name for name, found in kinds.items() if len(found) > 1} == set()


@pytest.mark.parametrize("script", [bash.script, zsh.script, fish.script])
def test_a_script_names_every_command_and_option(script: Callable[[], str]) -> None:
    text = script()
    for command in all_commands():
        assert command.name in text
        for field in fields_of(command.options):
            assert all(flag.lstrip("-") in text for flag in field.flags)


def test_a_meaning_with_a_quote_or_a_bracket_ends_no_word() -> None:
    assert zsh._quoted("it's") == "'it'\\''s'"
    assert zsh._escaped("a:b[c]") == r"a\:b\[c\]"
    assert fish._quoted("it's") == r"'it\'s'"
