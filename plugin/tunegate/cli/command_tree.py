"""All commands: those of the core, and those of installed extras, by the entry-point group
`tunegate.cli.handlers`. A declaration is imported on demand, and extras are looked up only for a
word that is no core command, and for a list of all."""

import importlib

from tunegate.cli.command import Command, CommandGroup
from tunegate.errors import EnvironmentUnfitError
from tunegate_cache.installed_plugins import PluginError, find_plugins, load_plugin

COMMAND_GROUP = "tunegate.cli.handlers"
"""Each entry point's value is a `Command` with the entry point's name."""
_ROOM = "tunegate.cli.commands"
_FILES = {
    "starting": ("init", "doctor", "demo", "completion"),
    "gating": (
        *("run", "warm", "detect", "plan", "tune", "gate", "measure", "verdict"),
        *("compare", "confirm"),
    ),
    "cache": ("cache",),
}
"""The commands that each file of `cli/commands/` declares, as constants with their names."""

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
    "confirm",
    "cache",
    "completion",
)
HELP = "help"
"""Shows the help of a command. The parser handles it: it is no command of its own."""
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
        "pull",
        "push",
    ),
)
GROUPS = {group.name: group for group in (CACHE_GROUP,)}


def command_names() -> tuple[str, ...]:
    """Returns the first words of all commands, the extras' last. A core command cannot be
    replaced."""
    more = (name for name in find_plugins(COMMAND_GROUP) if name.partition(" ")[0] not in COMMANDS)
    return (*COMMANDS, *more)


def names_in(group: CommandGroup) -> tuple[str, ...]:
    """Returns the second words of a group's commands, the extras' last."""
    begin = f"{group.name} "
    words = (n.removeprefix(begin) for n in find_plugins(COMMAND_GROUP) if n.startswith(begin))
    return (*group.commands, *(name for name in words if name not in group.commands))


def find_declaration(name: str) -> Command | CommandGroup:
    """Returns the declaration of an existing command. Raises EnvironmentUnfitError for one of an
    unusable extra."""
    if name in GROUPS:
        return GROUPS[name]
    first, _, last = name.rpartition(" ")
    if name not in COMMANDS and (first not in GROUPS or last not in GROUPS[first].commands):
        return _declared_by_an_extra(name)
    module = next(file for file, names in _FILES.items() if (first or last) in names)
    constant = last.replace("-", "_").upper()
    command: Command = getattr(importlib.import_module(f"{_ROOM}.{module}"), constant)
    return command


def _declared_by_an_extra(name: str) -> Command:
    plugin = find_plugins(COMMAND_GROUP)[name]
    try:
        command = load_plugin(plugin)
    except PluginError as error:
        raise EnvironmentUnfitError(f"{error}. Install it again, or remove it.") from error
    if not isinstance(command, Command) or command.name != name:
        what = f'{plugin.offered_by[0]}: "{plugin.value}" does not declare the command {name}'
        raise EnvironmentUnfitError(f"{what}. Remove it.")
    return command
