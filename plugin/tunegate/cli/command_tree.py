"""Which commands there are. The declaration of one is imported when somebody asks for it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from tunegate.cli.command import Command, CommandGroup

_ROOM = "tunegate.cli.commands"
_MODULES = {"cache import": "cache.import_records"}
"""The modules of commands that no module can be named after."""

COMMANDS = (
    "init",
    "doctor",
    "demo",
    "run",
    "warm",
    "detect",
    "plan",
    "tune",
    "gate",
    "measure",
    "verdict",
    "compare",
    "deploy-gate",
    "bench-rules",
    "study",
    "selftest",
    "confirm",
    "history",
    "cache",
    "experience",
    "completion",
)
HELP = "help"
"""Shows the help of a command. The parser answers it: it is no command of its own."""
HELP_SUMMARY = "show the help of a command"

CACHE_GROUP = CommandGroup(
    name="cache",
    summary="look into the cache, and maintain it",
    commands=(
        "stats",
        "why-miss",
        "doctor",
        "probe",
        "fsck",
        "gc",
        "compact",
        "revoke",
        "promote",
        "pin",
        "export",
        "import",
        "pull",
        "push",
    ),
)
EXPERIENCE_GROUP = CommandGroup(
    name="experience",
    summary="measure tasks for cost models, and judge what is known before a first trial",
    commands=("collect", "export", "train", "evaluate"),
)
GROUPS = {group.name: group for group in (CACHE_GROUP, EXPERIENCE_GROUP)}


def declared(name: str) -> Command | CommandGroup:
    """The declaration of a command that exists."""
    if name in GROUPS:
        return GROUPS[name]
    module = _MODULES.get(name, name.replace("-", "_").replace(" ", "."))
    command: Command = importlib.import_module(f"{_ROOM}.{module}").COMMAND
    return command


def all_commands() -> Iterator[Command]:
    """Every command, those of a group in its place."""
    for name in COMMANDS:
        found = declared(name)
        names = (
            [f"{name} {each}" for each in found.commands] if isinstance(found, CommandGroup) else []
        )
        commands = map(declared, names) if names else [found]
        yield from (each for each in commands if isinstance(each, Command))
