from __future__ import annotations

import keyword
from pathlib import Path

from tunegate.cli import commands
from tunegate.cli.command import Command
from tunegate.cli.command_tree import COMMANDS, GROUPS, all_commands, declared

ROOM = Path(commands.__path__[0])


def test_every_declaration_is_listed_once() -> None:
    files = [path for path in ROOM.rglob("*.py") if path.name != "__init__.py"]
    names = [command.name for command in all_commands()]
    assert len(names) == len(set(names)) == len(files)


def test_a_command_has_the_name_that_it_is_listed_under() -> None:
    grouped = (f"{group.name} {each}" for group in GROUPS.values() for each in group.commands)
    for name in (*COMMANDS, *grouped):
        assert declared(name).name == name


def test_a_module_is_named_after_its_command_where_that_is_a_name() -> None:
    for command in all_commands():
        last = command.name.split()[-1].replace("-", "_")
        module = command.options.__module__.rpartition(".")[2]
        assert module == last or keyword.iskeyword(last)


def test_a_group_lists_its_commands_in_its_place() -> None:
    names = [command.name for command in all_commands()]
    assert names.index("history") < names.index("cache stats") < names.index("completion")
    assert all(isinstance(command, Command) for command in all_commands())
