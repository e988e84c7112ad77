from __future__ import annotations

from tests.support.golden import Golden
from tunegate import errors
from tunegate.cli import man_page
from tunegate.cli.command_tree import all_commands


def test_the_shipped_page_is_what_is_declared(golden: Golden) -> None:
    golden.check("../../docs/tunegate.1", man_page.man_page())


def test_every_command_and_exit_code_is_on_the_page() -> None:
    page = man_page.man_page().replace(r"\-", "-")
    codes = {value for name, value in vars(errors).items() if name.isupper()}
    assert all(f".B {code}\n" in page for code in codes if isinstance(code, int))
    assert all(f".SS tunegate {command.name} " in page for command in all_commands())


def test_a_text_that_looks_like_a_macro_is_shown_as_it_is() -> None:
    assert man_page._text(".tunegate") == r"\&.tunegate"
    assert man_page._text("a\\b --c") == r"a\eb \-\-c"
