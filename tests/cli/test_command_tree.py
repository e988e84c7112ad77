from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.plugins.registered_plugin import nothing_installed, register
from tunegate.cli import commands
from tunegate.cli.command import Command
from tunegate.cli.command_tree import (
    COMMAND_GROUP,
    COMMANDS,
    GROUPS,
    all_commands,
    core_commands,
    declared,
)
from tunegate.cli.completion.words import top_words
from tunegate.cli.help_pages import overview
from tunegate.cli.parse import parse
from tunegate.errors import EnvironmentUnfitError

ROOM = Path(commands.__path__[0])


def test_every_declaration_is_listed_once() -> None:
    declarations = sum(path.read_text().count(" = Command(") for path in ROOM.glob("*.py"))
    names = [command.name for command in core_commands()]
    assert len(names) == len(set(names)) == declarations


def test_a_command_has_the_name_that_it_is_listed_under() -> None:
    grouped = (f"{group.name} {each}" for group in GROUPS.values() for each in group.commands)
    for name in (*COMMANDS, *grouped):
        assert declared(name).name == name


def test_a_group_lists_its_commands_in_its_place() -> None:
    names = [command.name for command in all_commands()]
    assert names.index("history") < names.index("cache stats") < names.index("completion")
    assert all(isinstance(command, Command) for command in all_commands())


FLY = """
from tunegate.cli.command import Command
from tunegate.cli.shared_options import Options

COMMAND = Command(
    name="fly",
    summary="leave the ground",
    options=Options,
    handler="nowhere_to_be_found:run",
    examples=("tunegate fly",),
)
"""


@pytest.fixture
def fly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module of a package that adds a command, and nothing else is installed."""
    nothing_installed(tmp_path, monkeypatch)
    register(tmp_path, "a_plane-1.0", COMMAND_GROUP, "fly", "a_plane:COMMAND")
    module = tmp_path / "a_plane.py"
    module.write_text(FLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "a_plane", raising=False)
    return module


@pytest.mark.usefixtures("fly")
def test_a_command_of_an_extra_is_one_like_any_other() -> None:
    assert parse(["fly", "--json"]).command.handler == "nowhere_to_be_found:run"
    assert [command.name for command in all_commands()][-1] == "fly"
    assert "  fly           leave the ground" in overview().splitlines()
    assert "fly" in {word.text for word in top_words()}


def test_an_extra_that_cannot_be_used_costs_its_own_command(fly: Path) -> None:
    fly.write_text("import a_library_that_is_not_here\n")
    (line,) = (line for line in overview().splitlines() if line.startswith("  fly "))
    assert "cannot be used: a-plane 1.0:" in line
    assert parse(["detect"]).command.name == "detect"
    with pytest.raises(EnvironmentUnfitError, match=r"a-plane 1\.0: .* Install it again"):
        parse(["fly"])


def test_what_declares_another_command_is_refused(fly: Path) -> None:
    fly.write_text(FLY.replace('name="fly"', 'name="run"'))
    with pytest.raises(EnvironmentUnfitError, match="does not declare the command fly"):
        parse(["fly"])


def test_a_name_of_the_core_stays_the_cores(fly: Path) -> None:
    register(fly.parent, "thief-1.0", COMMAND_GROUP, "run", "a_plane:COMMAND")
    assert parse(["run"]).command.handler.startswith("tunegate.")
    assert [command.name for command in all_commands()].count("run") == 1
