from __future__ import annotations

from tests.support.golden import Golden
from tunegate.cli.command_tree import core_commands
from tunegate.cli.parse import fields_of
from tunegate.cli.reference_page import reference_page


def test_the_page_of_the_documentation_is_what_is_declared(golden: Golden) -> None:
    golden.check("../../docs/commands.md", reference_page())


def test_every_option_of_every_command_is_on_the_page() -> None:
    page = reference_page()
    for command in core_commands():
        assert f"## tunegate {command.name}\n" in page
        for field in fields_of(command.options):
            assert all(f"`{flag}" in page for flag in field.flags)
