"""The page of this extra says what its command can do."""

from __future__ import annotations

from pathlib import Path

from tunegate.cli.parse import fields_of
from tunegate_deploy.command import COMMAND

PAGE = (Path(__file__).parents[2] / "README.md").read_text()


def test_each_option_of_its_own_is_on_the_page() -> None:
    own = [field for field in fields_of(COMMAND.options) if not field.title]
    flags = [flag for field in own for flag in field.flags if flag.startswith("--")]
    assert [flag for flag in flags if flag not in PAGE] == []
    assert "--promote" in flags
